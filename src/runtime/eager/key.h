// SPDX-License-Identifier: Apache-2.0
// The key of an eager call: a few words made from the op, the attributes and the tensors'
// descriptions. Making one allocates nothing.
#pragma once

#include <bit>
#include <span>

#include "base/small_vector.h"
#include "ops/op.h"
#include "runtime/tensor_view.h"

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

// Another number each time.
uint64_t next_id();

NamedAttr to_named(const EagerAttr& attr);
Attrs complete(const Op& op, std::span<const EagerAttr> attrs);

class EagerKey {
 public:
  EagerKey() = default;
  EagerKey(const Op& op, std::span<const EagerAttr> attrs);

  void clear() { words_.clear(); }
  void add(uint64_t word) { words_.push_back(word); }
  void add(std::span<const int64_t> numbers);
  void add(const TensorView& view);
  // An output that is row-major is like one that is yet to be made: its shape follows from the
  // inputs, and is not part of the key.
  void add_output(const TensorView& view);

  uint64_t hash() const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (const uint64_t word : words_) hash = std::rotl(hash ^ word, 23) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
  }
  friend bool operator==(const EagerKey&, const EagerKey&) = default;

 private:
  void add_text(const char* text);

  SmallVector<uint64_t, 40> words_;
};

struct EagerKeyHash {
  size_t operator()(const EagerKey& key) const { return key.hash(); }
};

// An op with its attributes, checked and completed once for any number of calls. Attributes that
// are named as parameters, numbers all, come with each call instead.
struct BoundOp {
  BoundOp(const Op& which, std::span<const EagerAttr> given,
          std::vector<std::string> parameter_names = {});
  // With the values of the parameters.
  Attrs attrs_with(std::span<const double> values) const;

  const uint64_t id;  // no other's
  const Op& op;
  const std::vector<std::string> parameters;
  const Attrs attrs;
  EagerKey key;  // how the keys of all its calls begin
};

}  // namespace anymps
