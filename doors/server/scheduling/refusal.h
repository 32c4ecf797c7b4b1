// SPDX-License-Identifier: Apache-2.0
// What schedulers share: how they answer requests that never reach an instance, and how they make
// their instances known to the rate limiter.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/core/clock.h"
#include "server/observation/statistics.h"
#include "server/scheduling/rate_limiter.h"
#include "server/scheduling/scheduler.h"

namespace anymps::server {

inline constexpr char kQueueFull[] = "Exceeds maximum queue size";
inline constexpr char kTimeout[] = "Request timeout expired";
inline constexpr char kCancelled[] = "Request cancelled";
inline constexpr char kStopping[] =
    "Server is stopping, scheduler for model has stopped accepting new inference requests";

inline void refuse(ModelMetrics& metrics, RequestPtr request, Code code,
                   const std::string& message) {
  request->times.answered = now_ns();
  metrics.failure(request->times, code);
  request->fail(code, message);
}

class Registration {
 public:
  Registration(RateLimiter& limiter, const std::vector<std::unique_ptr<Instance>>& instances)
      : limiter_(limiter) {
    try {
      for (const std::unique_ptr<Instance>& instance : instances) {
        groups_.push_back(instance->group());
        limiter.add(groups_.back());
      }
    } catch (...) {
      groups_.pop_back();
      release();
      throw;
    }
  }
  ~Registration() { release(); }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  void release() {
    for (const inference::ModelInstanceGroup& group : groups_) limiter_.remove(group);
    groups_.clear();
  }

 private:
  RateLimiter& limiter_;
  std::vector<inference::ModelInstanceGroup> groups_;
};

}  // namespace anymps::server
