// SPDX-License-Identifier: Apache-2.0
// Elements in another arrangement on the CPU: each op is a few strided copies, planned at
// preparation. An axis that is cut into blocks is copied as two axes.
#include <algorithm>
#include <array>

#include "drivers/cpu/common/copy.h"
#include "drivers/kernel.h"
#include "ops/movement/blocks.h"
#include "ops/shape_rules.h"

namespace anymps::cpu {

namespace {

constexpr int kZeros = -1;  // as an input: a zero for every element

struct Part {
  int input = 0;
  int64_t to = 0;  // bytes from y's first element
  StridedCopy copy;
};

KernelPtr make_parts(std::vector<Part> parts) {
  return make_kernel([parts = std::move(parts)](const KernelArgs& args) {
    static constexpr std::array<std::byte, 16> kZero = {};
    for (const Part& part : parts)
      part.copy.run(
          static_cast<char*>(args.outputs[0]) + part.to,
          part.input == kZeros ? static_cast<const void*>(kZero.data()) : args.inputs[part.input]);
  });
}

KernelPtr make_interleave(const KernelRequest& request, std::string&) {
  const TensorDesc& y = request.out();
  const auto axis =
      static_cast<size_t>(normalize_axis(request.attrs.i("axis"), y.rank(), "interleave"));
  const auto count = static_cast<int64_t>(request.inputs.size());
  const auto size = static_cast<int64_t>(size_of(y.dtype));
  Strides to = y.strides;
  to[axis] *= count;
  std::vector<Part> parts;
  for (int64_t k = 0; k < count; ++k) {
    const TensorDesc& x = request.in(static_cast<size_t>(k));
    parts.push_back({static_cast<int>(k), k * y.strides[axis] * size,
                     StridedCopy(size_of(y.dtype), x.shape, to, x.strides)});
  }
  return make_parts(std::move(parts));
}

// `small` is the tensor whose batch axis holds the places in blocks, `large` the other one.
KernelPtr make_blocks(const KernelRequest& request, bool to_batch) {
  const TensorDesc &x = request.in(0), &y = request.out();
  const TensorDesc &small = to_batch ? y : x, &large = to_batch ? x : y;
  const Blocks blocks = blocks_of(request.attrs, x.rank(), request.op->name.c_str());
  const bool shuffle = request.attrs.b("pixel_shuffle");
  const auto batch = static_cast<size_t>(blocks.batch);
  int64_t places = 1;
  for (const int64_t block : blocks.sizes) places *= block;
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
      axis(large.shape[i], small.strides[i] * (shuffle ? places : 1), large.strides[i]);
    } else if (found == blocks.axes.end()) {
      axis(large.shape[i], small.strides[i], large.strides[i]);
    } else {
      const auto at = static_cast<size_t>(found - blocks.axes.begin());
      int64_t step = shuffle ? 1 : large.shape[batch];
      for (size_t k = at + 1; k < blocks.sizes.size(); ++k) step *= blocks.sizes[k];
      const int64_t block = blocks.sizes[at];
      axis(small.shape[i], small.strides[i], large.strides[i] * block);
      axis(block, small.strides[batch] * step, large.strides[i]);
    }
  }
  return make_parts({{0, 0,
                      StridedCopy(size_of(x.dtype), shape, to_batch ? in_small : in_large,
                                  to_batch ? in_large : in_small)}});
}
KernelPtr make_space_to_batch(const KernelRequest& request, std::string&) {
  return make_blocks(request, true);
}
KernelPtr make_batch_to_space(const KernelRequest& request, std::string&) {
  return make_blocks(request, false);
}

// y starts as a copy of x or as zeros, and then the range gets the update.
KernelPtr make_range(const KernelRequest& request, int start, int update, std::string& why) {
  static const char* kNames[] = {"starts", "ends", "axes", "steps"};
  const TensorDesc& y = request.out();
  std::vector<int64_t> lists[4];
  for (size_t i = 0; i < 4; ++i) {
    const auto list = request.ints(2 + i, kNames[i]);
    if (!list) return refuse(why, fmt::format("{} are not known", kNames[i]));
    lists[i] = *list;
  }
  const char* op = request.op->name.c_str();
  const auto ranges = slice_ranges(y.shape, lists[0], lists[1], lists[2], lists[3], op);
  const TensorDesc& part = request.in(static_cast<size_t>(update));
  if (part.shape.size() != ranges.size()) return refuse(why, "the update is of another rank");
  Strides to;
  int64_t first = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].length != part.shape[i]) return refuse(why, "the update does not fit the range");
    to.push_back(ranges[i].step * y.strides[i]);
    if (part.count() > 0) first += ranges[i].start * y.strides[i];
  }
  const size_t size = size_of(y.dtype);
  const Strides from =
      start == kZeros ? Strides(y.shape.size(), int64_t{0}) : request.in(0).strides;
  return make_parts({{start, 0, StridedCopy(size, y.shape, y.strides, from)},
                     {update, first * static_cast<int64_t>(size),
                      StridedCopy(size, part.shape, to, part.strides)}});
}
KernelPtr make_slice_update(const KernelRequest& request, std::string& why) {
  return make_range(request, 0, 1, why);
}
KernelPtr make_slice_gradient(const KernelRequest& request, std::string& why) {
  return make_range(request, kZeros, 0, why);
}

const KernelRegistrar kInterleave("cpu", "interleave", "copy", 10, make_interleave);
const KernelRegistrar kSpaceToBatch("cpu", "space_to_batch", "copy", 10, make_space_to_batch);
const KernelRegistrar kBatchToSpace("cpu", "batch_to_space", "copy", 10, make_batch_to_space);
const KernelRegistrar kSliceUpdate("cpu", "slice_update", "copy", 10, make_slice_update);
const KernelRegistrar kSliceGradient("cpu", "slice_gradient", "copy", 10, make_slice_gradient);

}  // namespace

}  // namespace anymps::cpu
