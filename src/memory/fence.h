// SPDX-License-Identifier: Apache-2.0
// A point in a stream's work. Memory that the work before it still uses is given back after it.
#pragma once

#include <memory>
#include <vector>

namespace anymps {

// Neither function throws: an error of the work belongs to the stream, and ends the waiting too.
class Fence {
 public:
  virtual ~Fence() = default;

  // Called with the allocator's lock held: must not block or call the allocator.
  virtual bool done() noexcept = 0;
  // Called without the lock. done() is true afterwards.
  virtual void wait() noexcept = 0;
};

using FenceRef = std::shared_ptr<Fence>;
using Fences = std::vector<FenceRef>;

}  // namespace anymps
