// SPDX-License-Identifier: Apache-2.0
// What a prepared kernel is found by: the kernel, the device, the types and shapes of tensors, and
// the values of all else.
#pragma once

#include <bit>
#include <cstring>
#include <vector>

#include "lowering/kernel.h"

namespace anymps::lowering {

class Key {
 public:
  // Takes over memory of an earlier key.
  explicit Key(std::vector<uint64_t>& words) : words_(words) { words_.clear(); }

  void add(uint64_t word) { words_.push_back(word); }
  void add(const amps_view& view) {
    add(static_cast<uint64_t>(view.dtype) << 33 | uint64_t{row_major(view)} << 32 |
        static_cast<uint32_t>(view.rank));
    for (int32_t i = 0; i < view.rank; ++i) add(static_cast<uint64_t>(view.dims[i]));
  }
  void add(const Argument& argument, bool at_run) {
    using Kind = Argument::Kind;
    const size_t count = argument.views.size() + argument.ints.size() + argument.floats.size();
    add(static_cast<uint64_t>(argument.kind) << 48 | count << 1 | at_run);
    for (const amps_view& view : argument.views) add(view);
    if (at_run) return;
    if (argument.kind == Kind::kFloat) add(std::bit_cast<uint64_t>(argument.f));
    if (argument.kind == Kind::kFlag || argument.kind == Kind::kInt ||
        argument.kind == Kind::kDType)
      add(static_cast<uint64_t>(argument.i));
    for (const int64_t number : argument.ints) add(static_cast<uint64_t>(number));
    for (const double number : argument.floats) add(std::bit_cast<uint64_t>(number));
    if (argument.kind == Kind::kText) add(argument.text);
  }
  void add(std::string_view text) {
    add(text.size());
    for (size_t at = 0; at < text.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + at, std::min(sizeof(word), text.size() - at));
      add(word);
    }
  }

  uint64_t hash() const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (const uint64_t word : words_) hash = std::rotl(hash ^ word, 23) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
  }
  const std::vector<uint64_t>& words() const { return words_; }

 private:
  std::vector<uint64_t>& words_;
};

}  // namespace anymps::lowering
