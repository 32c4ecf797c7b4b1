// SPDX-License-Identifier: Apache-2.0
// A region is one piece of raw memory, and a list of regions is threaded through the regions
// themselves: giving memory back then never needs memory, so it cannot fail.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "memory/buddy.h"

namespace anymps {

struct Region;

struct RegionLink {
  Region* previous = nullptr;
  Region* next = nullptr;
};

struct Region {
  void* base = nullptr;
  size_t bytes = 0;
  // Set once the region has served as a slab, and kept for the next time.
  std::unique_ptr<Buddy> buddy = nullptr;
  bool is_slab = false;
  std::chrono::steady_clock::time_point freed_at = {};

  RegionLink group =
      {};  // in a bucket of the pool, among the slabs, or among the large blocks in use
  RegionLink age = {};  // in the pool: by the time it was freed
};

// A region is in at most one list per link.
template <RegionLink Region::*kLink>
class RegionList {
 public:
  bool empty() const { return !first_; }
  Region* front() const { return first_; }
  Region* back() const { return last_; }

  void push_back(Region* region) {
    region->*kLink = {last_, nullptr};
    (last_ ? (last_->*kLink).next : first_) = region;
    last_ = region;
  }

  void remove(Region* region) {
    auto [previous, next] = region->*kLink;
    (previous ? (previous->*kLink).next : first_) = next;
    (next ? (next->*kLink).previous : last_) = previous;
    region->*kLink = {};
  }

 private:
  Region* first_ = nullptr;
  Region* last_ = nullptr;
};

using GroupList = RegionList<&Region::group>;
using AgeList = RegionList<&Region::age>;

}  // namespace anymps
