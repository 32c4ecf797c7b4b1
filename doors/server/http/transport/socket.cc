// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport/socket.h"

#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace anymps::server::http {
namespace {

constexpr size_t kMaxTlsBytes = size_t{1} << 30;

ssize_t failure() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Socket::kAgain
                                                                   : Socket::kBroken;
}

}  // namespace

ssize_t Socket::receive(void* into, size_t bytes) {
  if (!tls_) {
    const ssize_t count = recv(fd_, into, bytes, 0);
    return count >= 0 ? count : failure();
  }
  wants_write_ = false;
  ERR_clear_error();
  const int count = SSL_read(tls_.get(), into, static_cast<int>(std::min(bytes, kMaxTlsBytes)));
  if (count > 0) return count;
  switch (SSL_get_error(tls_.get(), count)) {
    case SSL_ERROR_WANT_WRITE:
      wants_write_ = true;
      return kAgain;
    case SSL_ERROR_WANT_READ:
      return kAgain;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    default:
      return kBroken;
  }
}

ssize_t Socket::transmit(std::span<const iovec> pieces) {
  if (!tls_) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    const ssize_t count = sendmsg(fd_, &message, MSG_NOSIGNAL);
    return count >= 0 ? count : failure();
  }
  const auto piece = std::find_if(pieces.begin(), pieces.end(),
                                  [](const iovec& some) { return some.iov_len > 0; });
  if (piece == pieces.end()) return 0;
  ERR_clear_error();
  const int count = SSL_write(tls_.get(), piece->iov_base,
                              static_cast<int>(std::min(piece->iov_len, kMaxTlsBytes)));
  if (count > 0) return count;
  const int error = SSL_get_error(tls_.get(), count);
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? kAgain : kBroken;
}

void Socket::shutdown_writing() {
  if (tls_) SSL_shutdown(tls_.get());
  shutdown(fd_, SHUT_WR);
}

bool Socket::has_input() const {
  char byte = 0;
  return recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void Socket::close() {
  if (fd_ < 0) return;
  if (tls_ && SSL_is_init_finished(tls_.get())) SSL_shutdown(tls_.get());
  tls_.reset();
  ::close(fd_);
  fd_ = -1;
}

}  // namespace anymps::server::http
