// SPDX-License-Identifier: Apache-2.0
// What the plain kernels of recurrent layers and of their gradients know of a layer: its extents,
// which inputs it has, and where a sequence's parts lie. Both take x, w, r, b, seq_lens, … first.
#pragma once

#include <string>
#include <vector>

#include "drivers/kernel.h"

namespace anymps::cpu {

enum class RecurrentKind { kLstm, kGru, kRnn };

class RecurrentLayer : public Kernel {
 protected:
  using Kind = RecurrentKind;

  RecurrentLayer(const KernelRequest& request, Kind kind)
      : kind_(kind),
        gates_(kind == Kind::kLstm  ? 4
               : kind == Kind::kGru ? 3
                                    : 1),
        hidden_(request.attrs.i("hidden_size")),
        batch_first_(request.attrs.i("layout") == 1),
        reverse_(request.attrs.s("direction") == "reverse"),
        steps_(request.in(0).shape[batch_first_ ? 1 : 0]),
        batch_(request.in(0).shape[batch_first_ ? 0 : 1]),
        width_(request.in(0).shape[2]),
        directions_(request.in(1).shape[0]),
        outputs_(request.outputs.size()),
        op_(request.op->name) {
    for (size_t i = 0; i < request.inputs.size(); ++i) has_.push_back(request.has(i));
    if (has(4)) wide_lengths_ = request.in(4).dtype == DType::kI64;
    if (kind == Kind::kGru) linear_ = request.attrs.b("linear_before_reset");
  }

  bool has(size_t i) const { return i < has_.size() && has_[i]; }
  int64_t x_at(int64_t n, int64_t place) const {
    return (batch_first_ ? n * steps_ + place : place * batch_ + n) * width_;
  }
  int64_t y_at(int64_t d, int64_t n, int64_t place) const {
    return (batch_first_ ? (n * steps_ + place) * directions_ + d
                         : (place * directions_ + d) * batch_ + n) *
           hidden_;
  }
  int64_t state_at(int64_t d, int64_t n) const {
    return (batch_first_ ? n * directions_ + d : d * batch_ + n) * hidden_;
  }
  int64_t length_of(const KernelArgs& args, int64_t n) const {
    if (!has(4)) return steps_;
    const int64_t length = wide_lengths_ ? static_cast<const int64_t*>(args.inputs[4])[n]
                                         : static_cast<const int32_t*>(args.inputs[4])[n];
    require(length >= 0 && length <= steps_, "[{}] seq_lens has the entry {}, must be 0 to {}", op_,
            length, steps_);
    return length;
  }

  Kind kind_;
  int64_t gates_, hidden_;
  bool batch_first_, reverse_;
  int64_t steps_, batch_, width_, directions_;
  size_t outputs_;
  bool linear_ = false;  // gru: linear_before_reset

 private:
  std::string op_;
  std::vector<bool> has_;
  bool wide_lengths_ = false;
};

}  // namespace anymps::cpu
