// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport/gate.h"

#include <sys/resource.h>

#include <algorithm>

namespace anymps::server::http {
namespace {

// How many connections above the bound are told so at a time.
constexpr size_t kTold = 32;
// Descriptors that connections leave to the rest of the process.
constexpr rlim_t kReserve = 64;

}  // namespace

Gate::Gate(size_t most) : most_(most) {
  rlimit limit{};
  rlim_t all = std::numeric_limits<int>::max();
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) all = std::min(all, limit.rlim_cur);
  const rlim_t reserve = std::min(kReserve, all / 8);
  full_from_ = static_cast<int>(all - reserve);
  drop_from_ = static_cast<int>(all - reserve / 2);
}

std::pair<Gate::Verdict, Gate::Place> Gate::enter(int fd) {
  const size_t before = open_.fetch_add(1, std::memory_order_relaxed);
  Place place(this);
  // The kernel gives the lowest free descriptor: a high one says that few are left.
  if (fd >= drop_from_ || (before >= most_ && before - most_ >= kTold))
    return {Verdict::kDrop, std::move(place)};
  if (fd >= full_from_ || before >= most_) return {Verdict::kFull, std::move(place)};
  return {Verdict::kWelcome, std::move(place)};
}

}  // namespace anymps::server::http
