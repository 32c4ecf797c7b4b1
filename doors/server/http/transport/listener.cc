// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "serving/error.h"

namespace anymps::server::http {
namespace {

[[noreturn]] void fail(const std::string& address, uint16_t port, const char* why) {
  throw serving::Error(serving::Code::kUnavailable,
                       "cannot listen on '" + address + ":" + std::to_string(port) + "': " + why);
}

}  // namespace

int listen_on(const std::string& address, uint16_t port, bool reuse_port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(address.empty() ? nullptr : address.c_str(),
                                 std::to_string(port).c_str(), &hints, &found);
  if (status != 0) fail(address, port, gai_strerror(status));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = found; at; at = at->ai_next) {
    const int fd =
        socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0) {
      error = errno;
      continue;
    }
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (reuse_port) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 1024) == 0) return fd;
    error = errno;
    ::close(fd);
  }
  fail(address, port, std::strerror(error));
}

uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace anymps::server::http
