// SPDX-License-Identifier: Apache-2.0
// What a prepared kernel is found by: the kernel, the device, the types and shapes of tensors, and
// the values of all else.
#pragma once

#include <bit>
#include <cstring>
#include <span>

#include "lowering/few.h"
#include "lowering/kernel.h"

namespace anymps::lowering {

class Key {
 public:
  void add(uint64_t word) { words_.push_back(word); }
  void add(const amps_view& view, bool with_strides) {
    const bool plain = row_major(view);
    add(static_cast<uint64_t>(view.dtype) << 33 | uint64_t{plain} << 32 |
        static_cast<uint32_t>(view.rank));
    for (int32_t i = 0; i < view.rank; ++i) add(static_cast<uint64_t>(view.dims[i]));
    // Of up to two axes what is row-major says all: the stride of a single element moves nothing.
    if (!with_strides || !view.strides || (plain && view.rank <= 2)) return;
    for (int32_t i = 0; i < view.rank; ++i) add(static_cast<uint64_t>(view.strides[i]));
  }
  void add(const Argument& argument, bool at_run, bool with_strides) {
    using Kind = Argument::Kind;
    const size_t count = argument.views.size() + argument.ints.size() + argument.floats.size();
    add(static_cast<uint64_t>(argument.kind) << 48 | count << 1 | at_run);
    for (const amps_view& view : argument.views) add(view, with_strides);
    if (argument.kind == Kind::kTensor || at_run) return;
    if (argument.kind == Kind::kFloat || argument.kind == Kind::kComplex)
      add(std::bit_cast<uint64_t>(argument.f));
    if (argument.kind == Kind::kComplex) add(std::bit_cast<uint64_t>(argument.imaginary));
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

  // Every other word goes into a hash of its own, so that two multiplications run at a time.
  uint64_t hash() const {
    constexpr uint64_t kFactor = 0xff51afd7ed558ccdu;
    uint64_t even = 0x9e3779b97f4a7c15u, odd = 0xc2b2ae3d27d4eb4fu;
    const size_t count = words_.size();
    for (size_t i = 0; i + 1 < count; i += 2) {
      even = std::rotl(even ^ words_[i], 23) * kFactor;
      odd = std::rotl(odd ^ words_[i + 1], 23) * kFactor;
    }
    if (count % 2) even = std::rotl(even ^ words_[count - 1], 23) * kFactor;
    const uint64_t hash = (even ^ std::rotl(odd, 32)) * kFactor;
    return hash ^ hash >> 32;
  }
  std::span<const uint64_t> words() const { return words_; }

 private:
  Few<uint64_t, 128> words_;
};

}  // namespace anymps::lowering
