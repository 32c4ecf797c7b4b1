// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport/exchange.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace anymps::server::http {

Mailbox::Mailbox() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw Error(Code::kInternal, "cannot make an event file descriptor");
}

Mailbox::~Mailbox() { ::close(fd_); }

void Mailbox::deliver(Letter letter) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    wake = letters_.empty();
    letters_.push_back(std::move(letter));
  }
  const uint64_t one = 1;
  if (wake && write(fd_, &one, sizeof one) < 0) {
    // The counter is full, after more letters than there can be.
  }
}

void Mailbox::take(std::vector<Letter>& letters) {
  const std::lock_guard lock(mutex_);
  letters.swap(letters_);
}

void Mailbox::close() {
  std::vector<Letter> dropped;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  dropped.swap(letters_);
}

}  // namespace anymps::server::http
