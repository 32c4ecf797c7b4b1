// SPDX-License-Identifier: Apache-2.0
// concat, stack and tile on the CPU, as strided copies.
#include "drivers/cpu/common/copies.h"
#include "drivers/cpu/cpu_kernel.h"

namespace anymps::cpu {

namespace {

CPU_KERNEL(concat, "copy") {
  const TensorDesc& y = request.out();
  const size_t axis = normalize_axis(request.attrs.i("axis"), y.rank(), request.op->name.c_str());
  const bool stack = request.op->name == "stack";
  const int64_t size = size_of(y.dtype);
  std::vector<Piece> pieces;
  int64_t first = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    TensorDesc x = request.in(i);
    if (stack) {
      x.shape.insert(axis, 1);
      x.strides.insert(axis, 0);
    }
    pieces.push_back({static_cast<int>(i), 0, 0, first * y.strides[axis] * size,
                      StridedCopy(size_of(y.dtype), x.shape, y.strides, x.strides)});
    first += x.shape[axis];
  }
  return make_copies(std::move(pieces));
}

// Each axis becomes two: which repetition, and where in it.
CPU_KERNEL(tile, "copy") {
  const TensorDesc &x = request.in(0), &y = request.out();
  Shape shape;
  Strides to, from;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    shape.push_back(x.shape[i] == 0 ? 0 : y.shape[i] / x.shape[i]);
    shape.push_back(x.shape[i]);
    to.push_back(y.strides[i] * x.shape[i]);
    to.push_back(y.strides[i]);
    from.push_back(0);
    from.push_back(x.strides[i]);
  }
  return make_copies({{0, 0, 0, 0, StridedCopy(size_of(x.dtype), shape, to, from)}});
}

const KernelRegistrar kStack("cpu", "stack", "copy", 10, make_concat);

}  // namespace

}  // namespace anymps::cpu
