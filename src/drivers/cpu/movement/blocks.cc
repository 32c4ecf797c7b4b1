// SPDX-License-Identifier: Apache-2.0
// Elements in another arrangement on the CPU: strided copies, where an axis that is cut into blocks
// is copied as two axes; and coordinate_along_axis, whose elements follow from their places.
#include <algorithm>

#include "drivers/cpu/common/copies.h"
#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"
#include "ops/movement/blocks.h"
#include "semantics/scalar_functions.h"

namespace anymps::cpu {

namespace {

CPU_KERNEL(interleave, "copy") {
  const TensorDesc& y = request.out();
  const size_t axis = normalize_axis(request.attrs.i("axis"), y.rank(), "interleave");
  const auto count = std::ssize(request.inputs);
  const int64_t size = size_of(y.dtype);
  Strides to = y.strides;
  to[axis] *= count;
  std::vector<Piece> pieces;
  for (int64_t k = 0; k < count; ++k) {
    const TensorDesc& x = request.in(k);
    pieces.push_back({static_cast<int>(k), 0, 0, k * y.strides[axis] * size,
                      StridedCopy(size_of(y.dtype), x.shape, to, x.strides)});
  }
  return make_copies(std::move(pieces));
}

// `small` is the tensor whose batch axis holds the places in blocks, `large` the other one.
KernelPtr make_blocks(const KernelRequest& request, bool to_batch) {
  const TensorDesc &x = request.in(0), &y = request.out();
  const TensorDesc &small = to_batch ? y : x, &large = to_batch ? x : y;
  const Blocks blocks = blocks_of(request.attrs, x.rank(), request.op->name.c_str());
  const size_t batch = blocks.batch;
  Shape shape;
  Strides in_small, in_large;
  const auto axis = [&](int64_t extent, int64_t small_step, int64_t large_step) {
    shape.push_back(extent);
    in_small.push_back(small_step);
    in_large.push_back(large_step);
  };
  for (size_t i = 0; i < large.shape.size(); ++i) {
    const auto found = std::find(blocks.axes.begin(), blocks.axes.end(), static_cast<int64_t>(i));
    if (i == batch) {
      axis(large.shape[i], small.strides[i] * blocks.batch_step(), large.strides[i]);
    } else if (found == blocks.axes.end()) {
      axis(large.shape[i], small.strides[i], large.strides[i]);
    } else {
      const size_t at = found - blocks.axes.begin();
      const int64_t block = blocks.sizes[at], step = blocks.place_step(at, large.shape[batch]);
      axis(small.shape[i], small.strides[i], large.strides[i] * block);
      axis(block, small.strides[batch] * step, large.strides[i]);
    }
  }
  return make_copies({{0, 0, 0, 0,
                       StridedCopy(size_of(x.dtype), shape, to_batch ? in_small : in_large,
                                   to_batch ? in_large : in_small)}});
}
CPU_KERNEL(space_to_batch, "copy") { return make_blocks(request, true); }
CPU_KERNEL(batch_to_space, "copy") { return make_blocks(request, false); }

// The same bytes: element by element where the sizes are the same, else in order.
CPU_KERNEL(reinterpret, "copy") {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (size_of(x.dtype) == size_of(y.dtype))
    return make_copies(
        {{0, 0, 0, 0, StridedCopy(size_of(y.dtype), y.shape, y.strides, x.strides)}});
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  if (x.bytes() != y.bytes()) return refuse(why, "y has another number of bytes");
  return make_copies(
      {{0, 0, 0, 0,
        StridedCopy(size_of(x.dtype), x.shape, contiguous_strides(x.shape), x.strides)}});
}

CPU_KERNEL(coordinate_along_axis, "plain") {
  const TensorDesc& y = request.out();
  const auto axis = known_axis(request, 1, y.rank(), why);
  if (!axis) return nullptr;
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < y.shape.size(); ++i)
    if (i != *axis) (i < *axis ? outer : inner) *= y.shape[i];
  return dispatch<kReal>(y.dtype, [&]<typename T>() {
    return make_kernel([=, extent = y.shape[*axis]](const KernelArgs& args) {
      parallel_for(0, outer * extent, 3 + 0.2 * static_cast<double>(inner),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i)
                       std::fill_n(static_cast<T*>(args.outputs[0]) + i * inner, inner,
                                   scalar::convert<T>(i % extent));
                   });
    });
  });
}

}  // namespace

}  // namespace anymps::cpu
