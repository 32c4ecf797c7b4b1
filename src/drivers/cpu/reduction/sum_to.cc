// SPDX-License-Identifier: Apache-2.0
// sum_to on the CPU, and the sums over axes that gradients are made of.
#include <algorithm>

#include "drivers/cpu/common/copy.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/reduction/reduction.h"

namespace anymps::cpu {

KernelPtr make_sum_over(const KernelRequest& request, const TensorDesc& x, const TensorDesc& y,
                        const std::vector<bool>& reduced, std::string& why) {
  if (std::find(reduced.begin(), reduced.end(), true) == reduced.end())
    return make_kernel([copy = StridedCopy(size_of(x.dtype), x.shape, y.strides, x.strides)](
                           const KernelArgs& args) { copy.run(args.outputs[0], args.inputs[0]); });
  return make_sum(request, plan_reduction(x, y, reduced, true), why);
}

namespace {

CPU_KERNEL(sum_to, "sum") {
  const TensorDesc& x = request.in(0);
  TensorDesc y = request.out();
  while (y.shape.size() < x.shape.size()) {
    y.shape.insert(0, 1);
    y.strides.insert(0, 0);
  }
  std::vector<bool> reduced;
  for (size_t i = 0; i < x.shape.size(); ++i) reduced.push_back(y.shape[i] == 1 && x.shape[i] != 1);
  return make_sum_over(request, x, y, reduced, why);
}

}  // namespace

}  // namespace anymps::cpu
