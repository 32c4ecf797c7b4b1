// SPDX-License-Identifier: Apache-2.0
// Views that callers give, checked.
#pragma once

#include <string>
#include <vector>

#include "anymps/anymps.h"
#include "runtime/tensor_view.h"

namespace anymps::api {

// The views of a call, on the stack as long as they are few: a SmallVector without the cost of
// making those that are not there.
class Views {
 public:
  void push_back(const TensorView& view) {
    if (size_ < kFew) {
      few_.views[size_++] = view;
      return;
    }
    if (many_.empty()) many_.assign(few_.views, few_.views + kFew);
    many_.push_back(view);
    ++size_;
  }
  size_t size() const { return size_; }
  TensorView* begin() { return many_.empty() ? few_.views : many_.data(); }
  TensorView* end() { return begin() + size_; }
  const TensorView* begin() const { return many_.empty() ? few_.views : many_.data(); }
  const TensorView* end() const { return begin() + size_; }
  const TensorView& operator[](size_t i) const { return begin()[i]; }

 private:
  static constexpr size_t kFew = 8;
  union Room {
    Room() {}  // NOLINT: nothing is there yet
    TensorView views[kFew];
  };
  Room few_;
  size_t size_ = 0;
  std::vector<TensorView> many_;
};

// `what` ("input") and `who`, an op or a part in brackets, are for messages.
Views checked_views(const amps_view* views, size_t count, const char* what, const std::string& who);

}  // namespace anymps::api
