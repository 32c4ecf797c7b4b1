// SPDX-License-Identifier: Apache-2.0
// The kernel of one product of typed_gemm.h and what follows it.
#pragma once

#include <string>
#include <utility>

#include "drivers/cpu/linear/typed_gemm.h"
#include "drivers/cpu/linear/typed_tail.h"

namespace anymps::cpu {

class TypedProduct final : public Kernel {
 public:
  // `left`: the number of the input, 0 or 1, that is the left factor.
  TypedProduct(DType dtype, size_t left, TypedGemm gemm, TypedTail tail)
      : dtype_(dtype), left_(left), gemm_(std::move(gemm)), tail_(std::move(tail)) {}

  void run(const KernelArgs& args) const override {
    gemm_.run(args.inputs[left_], args.inputs[1 - left_], args.outputs[0], args.scratch);
    tail_.run(dtype_, args);
  }
  size_t scratch_bytes() const override { return gemm_.scratch_bytes(); }
  std::string detail() const override { return name(dtype_); }

 private:
  DType dtype_;
  size_t left_;
  TypedGemm gemm_;
  TypedTail tail_;
};

}  // namespace anymps::cpu
