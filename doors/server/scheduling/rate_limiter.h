// SPDX-License-Identifier: Apache-2.0
// Resources that instances of all models share. An instance runs when all resources that its group
// names are free; of those that wait, the one with the lowest (executions so far * priority) goes
// first. A resource is shared by all devices ("global") or there is one of it for each device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "model_config.pb.h"

namespace anymps::server {

class RateLimiter {
  struct State;

 public:
  // `limits`: what the command line gives, "R1" for all devices or "R1:0" for the device 0 alone;
  // resources that it does not name have the largest count that an instance asks for.
  RateLimiter(bool enabled, std::map<std::string, uint32_t> limits);
  bool enabled() const { return enabled_; }

  // Every instance is added before it runs and removed when it goes; make_scheduler does that.
  // `add` throws kInvalidArgument if an instance asks for more than there is.
  void add(const inference::ModelInstanceGroup& group);
  void remove(const inference::ModelInstanceGroup& group);

  size_t waiting() const;  // permits that are asked for and not given yet

  // Held while an instance runs a batch. The constructor waits and counts the execution. May
  // outlive the limiter.
  class Permit {
   public:
    Permit(RateLimiter& limiter, const inference::ModelInstanceGroup& group, uint64_t& executions);
    ~Permit();
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;
    void unused();  // there was nothing left to run: the execution does not count

   private:
    std::shared_ptr<State> state_;
    const inference::ModelInstanceGroup& group_;
    uint64_t& executions_;
  };

 private:
  const bool enabled_;
  std::shared_ptr<State> state_;
};

}  // namespace anymps::server
