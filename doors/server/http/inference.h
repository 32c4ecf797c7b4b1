// SPDX-License-Identifier: Apache-2.0
// Inference over HTTP: from an exchange to a request of the core, and from its response to a reply.
#pragma once

#include <optional>

#include "server/http/routes.h"
#include "server/http/transport/exchange.h"

namespace anymps::server {
class Server;
}

namespace anymps::server::http {

// Hand the request to the server, which answers through the exchange's mailbox. Throw Error if the
// request cannot be understood; nothing is under way then.
void start_infer(Server& server, const ExchangePtr& exchange, const Route& route);
void start_generate(Server& server, const ExchangePtr& exchange, const Route& route, bool stream);

}  // namespace anymps::server::http
