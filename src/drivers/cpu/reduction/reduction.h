// SPDX-License-Identifier: Apache-2.0
// How a reduction walks through memory, whatever it computes: kept axes, reduced axes, and the
// innermost run of the latter.
#pragma once

#include "drivers/cpu/common/loops.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

struct ReductionPlan {
  Loops kept;                 // operands x, y; innermost the one with the smallest step in x
  Loops outer;                // reduced axes but the innermost; operand x
  int64_t run = 1, step = 1;  // the innermost reduced axis: elements, and elements between them
  int64_t count = 1;          // elements that make one result

  // Results lie side by side in x and the reduced elements do not.
  bool side_by_side() const {
    return step != 1 && count > 1 && !kept.extents.empty() && kept.strides[0].back() == 1;
  }
};

// `reduced` says of each axis of x whether it is reduced.
ReductionPlan plan_reduction(const TensorDesc& x, const TensorDesc& y,
                             const std::vector<bool>& reduced, bool keep_dims);

enum class Reduction {
  kSum,
  kMean,
  kMax,
  kMin,
  kProd,
  kL1,
  kL2,
  kSumSquare,
  kLogSum,
  kLogSumExp,
  kAnd,
  kOr,
};

// For every dtype but f32 and the halves; null and a reason where there is none.
KernelPtr make_plain_reduction(const KernelRequest& request, const ReductionPlan& plan,
                               Reduction kind, bool propagate_nan, std::string& why);

// The same with vector code; null where there is none.
KernelPtr make_vector_reduction(const KernelRequest& request, const ReductionPlan& plan,
                                Reduction kind, bool propagate_nan);

// Of f32 and halves, whose results lie side by side in x; null where they do not.
KernelPtr make_column_reduction(const KernelRequest& request, const ReductionPlan& plan,
                                Reduction kind, bool propagate_nan);

// The sum of input 0 by a plan of the caller's own.
KernelPtr make_sum(const KernelRequest& request, const ReductionPlan& plan, std::string& why);

// The sum over the reduced axes of x; y has x's axes, those of extent 1. A copy if there are none.
KernelPtr make_sum_over(const KernelRequest& request, const TensorDesc& x, const TensorDesc& y,
                        const std::vector<bool>& reduced, std::string& why);

}  // namespace anymps::cpu
