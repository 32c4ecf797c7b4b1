// SPDX-License-Identifier: Apache-2.0
// Everything but inference: metadata, configuration, statistics, the model repository, shared
// memory, trace and log settings. Replies are made at once; those that may take long are for a
// worker thread.
#pragma once

#include "server/http/routes.h"
#include "server/http/transport/message.h"

namespace anymps::server {
class Server;
}

namespace anymps::server::http {

// Whether the topic takes this method: POST for what changes something or infers, GET for the rest.
bool allows(const Route& route, Method method);
// Whether the reply may take long: loading, unloading, looking through the repositories.
bool is_slow(Topic topic);

// Throws Error.
Reply control(Server& server, const Route& route, Method method, const Buffer& body);

}  // namespace anymps::server::http
