// SPDX-License-Identifier: Apache-2.0
// Those that wait are looked at in their order. One that has to go on waiting reserves what it
// needs, so that those behind it cannot starve it; those that need other resources pass it.
#include "server/scheduling/rate_limiter.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <vector>

#include "serving/error.h"

namespace anymps::server {

using serving::Code;
using serving::Error;

namespace {

struct Need {
  std::string key;  // "R1", or "R1:0" for one of a device
  uint32_t count = 0;
};

std::vector<Need> needs(const inference::ModelInstanceGroup& group) {
  const std::string device = std::to_string(group.gpus_size() > 0 ? group.gpus(0) : 0);
  std::map<std::string, uint32_t> counts;
  for (const auto& resource : group.rate_limiter().resources()) {
    uint32_t& count = counts[resource.global() ? resource.name() : resource.name() + ":" + device];
    count = std::max(count, resource.count());
  }
  std::vector<Need> result;
  for (const auto& [key, count] : counts) result.push_back({key, count});
  return result;
}

std::string name_of(const std::string& key) { return key.substr(0, key.rfind(':')); }

struct Waiter {
  std::vector<Need> needs;
  uint64_t* executions = nullptr;
  bool granted = false;
  std::condition_variable changed;
};

}  // namespace

struct RateLimiter::State {
  std::map<std::string, uint32_t> limits;
  std::mutex mutex;
  std::map<std::string, uint64_t> in_use;
  std::map<std::string, std::multiset<uint32_t>> wishes;
  std::multimap<uint64_t, Waiter*> waiting;  // by (executions * priority); then by arrival

  uint32_t limit(const std::string& key) const;
  bool fits(const std::vector<Need>& needs, const std::map<std::string, uint64_t>& reserved) const;
  void grant();
};

RateLimiter::RateLimiter(bool enabled, std::map<std::string, uint32_t> limits)
    : enabled_(enabled), state_(std::make_shared<State>()) {
  state_->limits = std::move(limits);
}

uint32_t RateLimiter::State::limit(const std::string& key) const {
  if (const auto exact = limits.find(key); exact != limits.end()) return exact->second;
  if (const auto all = limits.find(name_of(key)); all != limits.end()) return all->second;
  const auto found = wishes.find(key);
  return found == wishes.end() || found->second.empty() ? 0 : *found->second.rbegin();
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
  std::lock_guard lock(state_->mutex);
  for (const Need& need : wanted) {
    const std::string name = name_of(need.key);
    const bool named = state_->limits.contains(need.key) || state_->limits.contains(name);
    if (named && need.count > state_->limit(need.key))
      throw Error(Code::kInvalidArgument, "Resource count for \"" + name + "\" is limited to " +
                                              std::to_string(state_->limit(need.key)) +
                                              " which will prevent scheduling of one or more model "
                                              "instances, the minimum required count is " +
                                              std::to_string(need.count));
  }
  for (const Need& need : wanted) state_->wishes[need.key].insert(need.count);
  state_->grant();
}

void RateLimiter::remove(const inference::ModelInstanceGroup& group) {
  if (!enabled_) return;
  auto& wishes = state_->wishes;
  std::lock_guard lock(state_->mutex);
  for (const Need& need : needs(group)) {
    const auto found = wishes.find(need.key);
    if (found == wishes.end()) continue;
    if (const auto one = found->second.find(need.count); one != found->second.end())
      found->second.erase(one);
    if (found->second.empty()) wishes.erase(found);
  }
}

bool RateLimiter::State::fits(const std::vector<Need>& needs,
                              const std::map<std::string, uint64_t>& reserved) const {
  return std::all_of(needs.begin(), needs.end(), [&](const Need& need) {
    const auto used = in_use.find(need.key);
    const auto kept = reserved.find(need.key);
    return need.count + (used == in_use.end() ? 0 : used->second) +
               (kept == reserved.end() ? 0 : kept->second) <=
           limit(need.key);
  });
}

void RateLimiter::State::grant() {
  std::map<std::string, uint64_t> reserved;
  for (auto next = waiting.begin(); next != waiting.end();) {
    Waiter& waiter = *next->second;
    if (!fits(waiter.needs, reserved)) {
      for (const Need& need : waiter.needs) reserved[need.key] += need.count;
      ++next;
      continue;
    }
    for (const Need& need : waiter.needs) in_use[need.key] += need.count;
    ++*waiter.executions;
    waiter.granted = true;
    next = waiting.erase(next);
    waiter.changed.notify_one();
  }
}

size_t RateLimiter::waiting() const {
  std::lock_guard lock(state_->mutex);
  return state_->waiting.size();
}

RateLimiter::Permit::Permit(RateLimiter& limiter, const inference::ModelInstanceGroup& group,
                            uint64_t& executions)
    : state_(limiter.enabled_ ? limiter.state_ : nullptr), group_(group), executions_(executions) {
  if (!state_) return;
  Waiter waiter;
  waiter.needs = needs(group);
  waiter.executions = &executions;
  const uint64_t priority = std::max<uint32_t>(1, group.rate_limiter().priority());
  std::unique_lock lock(state_->mutex);
  state_->waiting.emplace(executions * priority, &waiter);
  state_->grant();
  waiter.changed.wait(lock, [&] { return waiter.granted; });
}

RateLimiter::Permit::~Permit() {
  if (!state_) return;
  const std::vector<Need> held = needs(group_);
  std::lock_guard lock(state_->mutex);
  for (const Need& need : held) state_->in_use[need.key] -= need.count;
  state_->grant();
}

void RateLimiter::Permit::unused() {
  if (!state_) return;
  std::lock_guard lock(state_->mutex);
  --executions_;
}

}  // namespace anymps::server
