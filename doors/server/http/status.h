// SPDX-License-Identifier: Apache-2.0
// The status page at `/` and the figures that it shows.
#pragma once

#include <string>

#include "server/http/transport/message.h"

namespace anymps::server {
class Server;
}

namespace anymps::server::http {

// The page itself, without figures.
Reply status_page();
// Models with state, counters, latencies and queues; memory of devices and process; response cache.
std::string status_json(Server& server);

}  // namespace anymps::server::http
