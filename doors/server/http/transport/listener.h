// SPDX-License-Identifier: Apache-2.0
// Listening sockets.
#pragma once

#include <cstdint>
#include <string>

namespace anymps::server::http {

// A socket that listens. An Error (kUnavailable) names address and port if it cannot.
int listen_on(const std::string& address, uint16_t port, bool reuse_port);
uint16_t port_of(int fd);

}  // namespace anymps::server::http
