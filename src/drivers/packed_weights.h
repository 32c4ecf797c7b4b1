// SPDX-License-Identifier: Apache-2.0
// Weights in the layout a kernel wants, made once and shared by all executables and shapes that
// want the same layout of the same constant. An entry lives as long as a kernel holds it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/fork.h"
#include "memory/allocator.h"
#include "memory/constant.h"

namespace anymps {

struct KernelRequest;

// Fails with kOutOfMemory where that many bytes can never be had on the request's device. Sizes
// come from attributes and small inputs too, which may say anything: so before memory is taken for
// them.
void check_room(const KernelRequest& request, size_t bytes);

class PackedWeights {
 public:
  explicit PackedWeights(std::shared_ptr<Allocator> allocator) : allocator_(std::move(allocator)) {}

  // The packed form `layout` of a constant; `pack` writes it when it is not there yet.
  BufferRef get(const Constant& constant, const std::string& layout, size_t bytes,
                const std::function<void(const std::byte* plain, void* packed)>& pack);
  // The same for a `pack` that multiplies by factors itself, one for each of `channels`; null:
  // none.
  BufferRef get_scaled(
      const Constant& constant, size_t channels, const std::string& layout, size_t bytes,
      const std::function<void(const std::byte* plain, const double* factors, void* packed)>& pack);
  size_t bytes() const;  // of all entries alive
  const Allocator& allocator() const { return *allocator_; }

 private:
  using Key = std::pair<uint64_t, std::string>;

  // `pack` has the elements of `source`.
  BufferRef get_from(const Constant& source, Key key, size_t bytes,
                     const std::function<void(const std::byte* plain, void* packed)>& pack);

  std::shared_ptr<Allocator> allocator_;
  std::condition_variable done_;  // an entry is not busy any more
  std::map<Key, std::weak_ptr<Buffer>> entries_;
  std::set<Key> busy_;  // being packed, without the lock
  size_t next_sweep_ = 16;
  // Those that other threads were packing are nobody's in a forked child.
  mutable ForkMutex mutex_{ForkMutex::kShort, [this](bool) {
                             std::construct_at(&done_);
                             std::construct_at(&busy_);
                           }};
};

}  // namespace anymps
