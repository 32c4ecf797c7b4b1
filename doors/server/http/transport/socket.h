// SPDX-License-Identifier: Apache-2.0
// A connected, non-blocking socket, with or without TLS.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <span>

#include "server/http/transport/tls.h"

namespace anymps::server::http {

class Socket {
 public:
  Socket(int fd, TlsSession tls) : fd_(fd), tls_(std::move(tls)) {}
  ~Socket() { close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Of both: > 0: bytes; kAgain: nothing now; kBroken. Of `receive`: 0: the other side closed.
  static constexpr ssize_t kAgain = -1, kBroken = -2;
  ssize_t receive(void* into, size_t bytes);
  ssize_t transmit(std::span<const iovec> pieces);
  // The last `receive` waits until the socket can be written to (TLS).
  bool wants_write() const { return wants_write_; }

  void shutdown_writing();
  bool has_input() const;  // something has come that was not received yet
  void close();
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  bool has_tls() const { return tls_ != nullptr; }
  bool is_ready() const { return !tls_ || SSL_is_init_finished(tls_.get()); }

 private:
  int fd_;
  TlsSession tls_;
  bool wants_write_ = false;
};

}  // namespace anymps::server::http
