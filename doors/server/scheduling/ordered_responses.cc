// SPDX-License-Identifier: Apache-2.0
// One thread at a time delivers, without the lock: the one that brought the answer whose turn it
// is goes on with those that wait behind it.
#include "server/scheduling/ordered_responses.h"

#include <utility>

namespace anymps::server {

void OrderedResponses::join(Request& request) {
  std::lock_guard lock(mutex_);
  request.respond = [self = shared_from_this(), ticket = tickets_++,
                     respond = std::move(request.respond)](Response&& response) {
    self->answer(ticket, {respond, std::move(response)});
  };
}

void OrderedResponses::answer(int64_t ticket, Answer answer) {
  std::unique_lock lock(mutex_);
  ready_.emplace(ticket, std::move(answer));
  if (delivering_) return;
  delivering_ = true;
  while (!ready_.empty() && ready_.begin()->first == next_) {
    auto node = ready_.extract(ready_.begin());
    lock.unlock();
    node.mapped().respond(std::move(node.mapped().response));
    node = {};
    lock.lock();
    ++next_;
  }
  delivering_ = false;
}

}  // namespace anymps::server
