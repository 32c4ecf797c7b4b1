// SPDX-License-Identifier: Apache-2.0
// Resources that instances of all models share. An instance runs when all resources that its group
// names are free; of those that wait, the one with the lowest (executions so far * priority) goes
// first. A resource is shared by all devices ("global") or there is one of it for each device.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "model_config.pb.h"

namespace server {

class RateLimiter {
 public:
  // `limits`: what the command line gives, "R1" for all devices or "R1:0" for the device 0 alone;
  // resources that it does not name have the largest count that an instance asks for.
  RateLimiter(bool enabled, std::map<std::string, uint32_t> limits);
  bool enabled() const { return enabled_; }

  // Every instance is added before it runs and removed when it goes; make_scheduler does that.
  // `add` throws kInvalidArgument if an instance asks for more than there is.
  void add(const inference::ModelInstanceGroup& group);
  void remove(const inference::ModelInstanceGroup& group);

  // Held while an instance runs a batch. The constructor waits and counts the execution.
  class Permit {
   public:
    Permit(RateLimiter& limiter, const inference::ModelInstanceGroup& group, uint64_t& executions);
    ~Permit();
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;
    void unused();  // there was nothing left to run: the execution does not count

   private:
    RateLimiter& limiter_;
    const inference::ModelInstanceGroup& group_;
    uint64_t& executions_;
  };

 private:
  struct Need {
    std::string key;  // "R1", or "R1:0" for one of a device
    uint32_t count = 0;
  };
  struct Waiter;
  static std::vector<Need> needs(const inference::ModelInstanceGroup& group);
  uint32_t limit(const std::string& key) const;
  bool fits(const std::vector<Need>& needs, const std::map<std::string, uint64_t>& reserved) const;
  void grant();

  const bool enabled_;
  const std::map<std::string, uint32_t> limits_;
  std::mutex mutex_;
  std::map<std::string, uint64_t> in_use_;
  std::map<std::string, std::multiset<uint32_t>> wishes_;
  std::multimap<uint64_t, Waiter*> waiting_;  // by (executions * priority); then by arrival
};

}  // namespace server
