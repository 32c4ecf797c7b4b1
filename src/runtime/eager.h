// SPDX-License-Identifier: Apache-2.0
// One op at a time, without a graph. A call is a look-up: its key is a few words made from the op,
// the attributes and the tensors' descriptions (never their elements, so scalars do not fill the
// cache), and the entry is a prepared kernel with the descriptions of its results.
#pragma once

#include <span>

#include "runtime/device.h"
#include "runtime/preparation.h"

namespace anymps {

// An attribute as a caller has it: no allocation until the call misses the cache.
struct EagerAttr {
  const char* name = nullptr;
  AttrKind kind = AttrKind::kInt;
  int64_t i = 0;
  double f = 0;
  const char* s = nullptr;
  std::span<const int64_t> ints;
  std::span<const double> floats;
};

NamedAttr to_named(const EagerAttr& attr);

class Eager {
 public:
  Eager(Device& device, size_t capacity) : device_(device), entries_(capacity) {}

  // Null inputs are absent. Outputs without a buffer are made; others are written to.
  void call(const Op& op, std::span<const Tensor* const> inputs, std::span<const EagerAttr> attrs,
            std::span<Tensor> outputs);

  CacheStats stats() const { return entries_.stats(); }
  void clear() { entries_.clear(); }

 private:
  using Key = SmallVector<uint64_t, 48>;
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Entry {
    explicit Entry(PreparedCall prepared) : call(std::move(prepared)) {}
    PreparedCall call;
    PreparedCall::Open open = PreparedCall::kNothing;  // look up again with what it names
    size_t weight = 1;                                 // in the cache
  };

  std::shared_ptr<Entry> keep(const Key& key, std::shared_ptr<Entry> entry) {
    const size_t weight = entry->weight;
    return entries_.insert(key, std::move(entry), weight);
  }
  std::shared_ptr<Entry> prepare(const Op& op, std::span<const Tensor* const> inputs,
                                 std::span<const EagerAttr> attrs, size_t outputs, bool content,
                                 const std::vector<Shape>* measured);
  std::vector<Shape> measure(const Op& op, std::span<const Tensor* const> inputs,
                             std::span<const EagerAttr> attrs, size_t outputs);
  Content content_of(const Tensor& tensor);
  void add_content(Key& key, std::span<const Tensor* const> inputs);

  Device& device_;
  LruCache<Key, Entry, KeyHash> entries_;
};

}  // namespace anymps
