// SPDX-License-Identifier: Apache-2.0
// Those that wait are looked at in their order. One that has to go on waiting reserves what it
// needs, so that those behind it cannot starve it; who needs other resources passes it.
#include "server/core/rate_limiter.h"

#include <algorithm>
#include <condition_variable>

#include "serving/error.h"

namespace server {

using serving::Code;
using serving::Error;

struct RateLimiter::Waiter {
  std::vector<Need> needs;
  uint64_t* executions = nullptr;
  bool granted = false;
  std::condition_variable changed;
};

RateLimiter::RateLimiter(bool enabled, std::map<std::string, uint32_t> limits)
    : enabled_(enabled), limits_(std::move(limits)) {}

std::vector<RateLimiter::Need> RateLimiter::needs(const inference::ModelInstanceGroup& group) {
  const std::string device = std::to_string(group.gpus_size() > 0 ? group.gpus(0) : 0);
  std::map<std::string, uint32_t> sums;
  for (const auto& resource : group.rate_limiter().resources()) {
    uint32_t& sum = sums[resource.global() ? resource.name() : resource.name() + ":" + device];
    sum = std::max(sum, resource.count());
  }
  std::vector<Need> result;
  for (const auto& [key, count] : sums) result.push_back({key, count});
  return result;
}

uint32_t RateLimiter::limit(const std::string& key) const {
  if (const auto exact = limits_.find(key); exact != limits_.end()) return exact->second;
  if (const auto all = limits_.find(key.substr(0, key.rfind(':'))); all != limits_.end())
    return all->second;
  const auto wishes = wishes_.find(key);
  return wishes == wishes_.end() || wishes->second.empty() ? 0 : *wishes->second.rbegin();
}

void RateLimiter::add(const inference::ModelInstanceGroup& group) {
  if (!enabled_) return;
  const auto& resources = group.rate_limiter().resources();
  for (const auto& a : resources)
    for (const auto& b : resources)
      if (a.name() == b.name() && a.global() != b.global())
        throw Error(Code::kInvalidArgument, "Resource \"" + a.name() +
                                                "\" is present as both global and device-specific "
                                                "resource in the model configuration.");
  const std::vector<Need> wanted = needs(group);
  std::lock_guard lock(mutex_);
  for (const Need& need : wanted) {
    const std::string name = need.key.substr(0, need.key.rfind(':'));
    const bool named = limits_.contains(need.key) || limits_.contains(name);
    if (named && need.count > limit(need.key))
      throw Error(Code::kInvalidArgument, "Resource count for \"" + name + "\" is limited to " +
                                              std::to_string(limit(need.key)) +
                                              " which will prevent scheduling of one or more model "
                                              "instances, the minimum required count is " +
                                              std::to_string(need.count));
  }
  for (const Need& need : wanted) wishes_[need.key].insert(need.count);
  grant();
}

void RateLimiter::remove(const inference::ModelInstanceGroup& group) {
  if (!enabled_) return;
  std::lock_guard lock(mutex_);
  for (const Need& need : needs(group)) {
    const auto found = wishes_.find(need.key);
    if (found == wishes_.end()) continue;
    if (const auto one = found->second.find(need.count); one != found->second.end())
      found->second.erase(one);
    if (found->second.empty()) wishes_.erase(found);
  }
}

bool RateLimiter::fits(const std::vector<Need>& needs,
                       const std::map<std::string, uint64_t>& reserved) const {
  return std::all_of(needs.begin(), needs.end(), [&](const Need& need) {
    const auto used = in_use_.find(need.key);
    const auto kept = reserved.find(need.key);
    return need.count + (used == in_use_.end() ? 0 : used->second) +
               (kept == reserved.end() ? 0 : kept->second) <=
           limit(need.key);
  });
}

void RateLimiter::grant() {
  std::map<std::string, uint64_t> reserved;
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    Waiter& waiter = *next->second;
    if (!fits(waiter.needs, reserved)) {
      for (const Need& need : waiter.needs) reserved[need.key] += need.count;
      ++next;
      continue;
    }
    for (const Need& need : waiter.needs) in_use_[need.key] += need.count;
    ++*waiter.executions;
    waiter.granted = true;
    next = waiting_.erase(next);
    waiter.changed.notify_one();
  }
}

RateLimiter::Permit::Permit(RateLimiter& limiter, const inference::ModelInstanceGroup& group,
                            uint64_t& executions)
    : limiter_(limiter), group_(group), executions_(executions) {
  if (!limiter.enabled_) return;
  Waiter waiter;
  waiter.needs = needs(group);
  waiter.executions = &executions;
  std::unique_lock lock(limiter.mutex_);
  const uint64_t priority = std::max<uint32_t>(1, group.rate_limiter().priority());
  limiter.waiting_.emplace(executions * priority, &waiter);
  limiter.grant();
  waiter.changed.wait(lock, [&] { return waiter.granted; });
}

RateLimiter::Permit::~Permit() {
  if (!limiter_.enabled_) return;
  const std::vector<Need> held = needs(group_);
  std::lock_guard lock(limiter_.mutex_);
  for (const Need& need : held) limiter_.in_use_[need.key] -= need.count;
  limiter_.grant();
}

void RateLimiter::Permit::unused() {
  if (!limiter_.enabled_) return;
  std::lock_guard lock(limiter_.mutex_);
  --executions_;
}

}  // namespace server
