// SPDX-License-Identifier: Apache-2.0
// Resources that instances of all models share. An instance runs when all resources that its group
// names are free; of those that wait, the one with the lowest (executions so far * priority) goes
// first.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "model_config.pb.h"

namespace server {

class RateLimiter {
 public:
  // `limits`: what the command line gives; resources that it does not name have the largest count
  // that an instance asks for.
  RateLimiter(bool enabled, std::map<std::string, uint32_t> limits);

  // Every instance registers before it runs and when it goes; throws kInvalidArgument if it asks
  // for more than there is.
  void add(const inference::ModelRateLimiter& wish);
  void remove(const inference::ModelRateLimiter& wish);

  // Held while an instance runs a batch. The constructor waits.
  class Permit {
   public:
    Permit(RateLimiter& limiter, const inference::ModelRateLimiter& wish, uint64_t& executions);
    ~Permit();
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;

   private:
    RateLimiter& limiter_;
    const inference::ModelRateLimiter& wish_;
  };

 private:
  struct Waiter;
  bool enabled_;
  std::map<std::string, uint32_t> limits_, in_use_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<std::string, uint32_t> wishes_;
  std::multimap<uint64_t, Waiter*> waiting_;
};

}  // namespace server
