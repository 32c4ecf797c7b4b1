// SPDX-License-Identifier: Apache-2.0
// Hands answers on in the order in which their requests were taken, whatever order they come in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "server/core/request.h"

namespace anymps::server {

class OrderedResponses : public std::enable_shared_from_this<OrderedResponses> {
 public:
  // The request's answer comes after those of all requests that joined before it.
  void join(Request& request);

 private:
  struct Answer {
    std::function<void(Response&&)> respond;
    Response response;
  };
  void answer(int64_t ticket, Answer answer);

  std::mutex mutex_;
  std::map<int64_t, Answer> ready_;
  int64_t tickets_ = 0, next_ = 0;
  bool delivering_ = false;
};

}  // namespace anymps::server
