// SPDX-License-Identifier: Apache-2.0
// Lines along the attribute `axis` that give one element each, for kernels of such ops.
#pragma once

#include "drivers/cpu/common/loops.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

struct PickedLines {
  Loops kept;  // operands: x, where its lines begin; then the outputs
  int64_t length = 0, step = 1;
};

inline PickedLines picked_lines(const KernelRequest& request) {
  const TensorDesc& x = request.in(0);
  const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), request.op->name.c_str());
  const bool keep = request.attrs.b("keep_dims");
  Shape shape;
  std::vector<Strides> strides(1 + request.outputs.size());
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (i == axis) continue;
    shape.push_back(x.shape[i]);
    strides[0].push_back(x.strides[i]);
    for (size_t k = 0; k < request.outputs.size(); ++k)
      strides[1 + k].push_back(request.out(k).strides[keep || i < axis ? i : i - 1]);
  }
  PickedLines lines{make_loops(shape, strides), x.shape[axis], x.strides[axis]};
  require(lines.length > 0 || lines.kept.count() == 0, "[{}] an empty axis has no element to give",
          request.op->name);
  return lines;
}

}  // namespace anymps::cpu
