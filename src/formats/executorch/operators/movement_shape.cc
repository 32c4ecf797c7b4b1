// SPDX-License-Identifier: Apache-2.0
// Operators of torch that take a tensor apart or give it another shape. Extents and places that are
// computed while the program runs stay values of the graph.
#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

Values view(KernelArguments& c) {
  if (c.is_known(1)) return {reshape(c, c.tensor(0), c.ints(1))};
  return {c.add("reshape", {c.tensor(0), c.shape(1)}, {{"allow_zero", true}})};
}

Values permute(KernelArguments& c) {
  Value* x = c.tensor(0);
  const Ints perm = c.axes(1, x);
  c.check(std::ssize(perm) == c.rank(x), "{} axes for rank {}", perm.size(), c.rank(x));
  return {transpose(c, x, perm)};
}

Value* exchange(KernelArguments& c, Value* x, int64_t a, int64_t b) {
  Ints perm = iota(0, c.rank(x));
  if (!perm.empty()) std::swap(perm[place(a)], perm[place(b)]);
  return transpose(c, x, perm);
}

Values transpose_copy(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {exchange(c, x, c.axis(1, x), c.axis(2, x))};
}

Values t_copy(KernelArguments& c) {
  Value* x = c.tensor(0);
  c.check(c.rank(x) <= 2, "rank {}", c.rank(x));
  return {c.rank(x) == 2 ? exchange(c, x, 0, 1) : x};
}

// Axes of another extent than 1 stay.
Value* squeezed(KernelArguments& c, Value* x, const Ints& axes) {
  Ints ones;
  for (int64_t axis : axes)
    if (c.rank(x) > 0 && known_extent(c, x, axis) == 1) ones.push_back(axis);
  return ones.empty() ? x : c.add("squeeze", {x}, {{"axes", ones}});
}

Values squeeze_dim(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {squeezed(c, x, {c.axis(1, x)})};
}
Values squeeze_dims(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {squeezed(c, x, c.axes(1, x))};
}
Values squeeze_all(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {squeezed(c, x, iota(0, c.rank(x)))};
}

Values unsqueeze_copy(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {unsqueeze(c, x, {c.normalize(c.i(1), c.rank(x) + 1)})};
}

// The inputs and attributes of slice and slice_update: (dim, start, end, step) from argument
// `first` on.
struct Range {
  Values inputs;  // starts, ends, axes, steps; empty when all are attributes
  NamedAttrs attrs;
};

Range range(KernelArguments& c, const Value* x, size_t first) {
  const int64_t axis = c.axis(first, x), step = c.i(first + 3);
  c.check(step > 0, "step {} is not positive", step);
  if (c.is_known(first + 1) && c.is_known(first + 2))
    return {{},
            {{"starts", Ints{c.maybe_i(first + 1).value_or(0)}},
             {"ends", Ints{c.maybe_i(first + 2).value_or(kEnd)}},
             {"axes", Ints{axis}},
             {"steps", Ints{step}}}};
  const auto bound = [&](size_t i, int64_t otherwise) -> Value* {
    if (c.is_none(i)) return c.graph.ints({otherwise});
    return reshape(c, c.number(i, DType::kI64), {1});
  };
  return {{bound(first + 1, 0), bound(first + 2, kEnd), c.graph.ints({axis}), c.graph.ints({step})},
          {}};
}

Values slice_copy(KernelArguments& c) {
  Value* x = c.tensor(0);
  Range places = range(c, x, 1);
  places.inputs.insert(places.inputs.begin(), x);
  return {c.add("slice", places.inputs, places.attrs)};
}

Values slice_scatter(KernelArguments& c) {
  Value *x = c.tensor(0), *update = c.cast(c.tensor(1), x->dtype());
  Range places = range(c, x, 2);
  places.inputs.insert(places.inputs.begin(), {x, update});
  return {c.add("slice_update", places.inputs, places.attrs)};
}

// The place after `index`; that after the last one, -1, is the end.
int64_t after(int64_t index) { return index == -1 || index == kEnd ? kEnd : index + 1; }

Values select_copy(KernelArguments& c) {
  Value* x = c.tensor(0);
  const int64_t axis = c.normalize(c.i(1), c.rank(x));  // a scalar has none
  if (!c.is_known(2)) return {c.add("gather", {x, c.number(2, DType::kI64)}, {{"axis", axis}})};
  const int64_t index = c.i(2);
  const Dim& extent = x->shape()[place(axis)];
  if (extent.known())
    c.check(index >= -extent.value() && index < extent.value(), "index {} is out of range for {}",
            index, extent.value());
  return {squeeze(c, slice(c, x, axis, index, after(index)), axis)};
}

Values select_scatter(KernelArguments& c) {
  Value* x = c.tensor(0);
  const int64_t axis = c.axis(2, x), index = c.i(3);
  Value* update = unsqueeze(c, c.cast(c.tensor(1), x->dtype()), {axis});
  return {c.add("slice_update", {x, update},
                {{"starts", Ints{index}}, {"ends", Ints{after(index)}}, {"axes", Ints{axis}}})};
}

Values narrow_copy(KernelArguments& c) {
  Value* x = c.tensor(0);
  const int64_t axis = c.axis(1, x);
  if (c.is_known(2) && c.is_known(3)) {
    const int64_t first = c.i(2) < 0 ? c.i(2) + known_extent(c, x, axis) : c.i(2);
    c.check(c.i(3) >= 0 && c.i(3) <= kEnd - std::max<int64_t>(first, 0), "{} elements from {} on",
            c.i(3), first);
    return {slice(c, x, axis, first, first + c.i(3))};
  }
  Value* start = reshape(c, c.number(2, DType::kI64), {1});
  Value* end = c.add("add", {start, reshape(c, c.number(3, DType::kI64), {1})});
  return {c.add("slice", {x, start, end, c.graph.ints({axis})})};
}

Values parts(KernelArguments& c, Value* x, int64_t axis, const Ints& sizes) {
  Values result;
  int64_t start = 0;
  for (int64_t size : sizes) {
    c.check(size >= 0 && size <= kEnd - start, "a part of {} elements", size);
    result.push_back(slice(c, x, axis, start, start + size));
    start += size;
  }
  return result;
}

Values split_copy(KernelArguments& c) {
  Value* x = c.tensor(0);
  const int64_t axis = c.axis(2, x), size = c.i(1);
  c.check(size > 0 || c.results().size() == 1, "parts of {} elements", size);
  return parts(c, x, axis, Ints(c.results().size(), size));
}

Values split_with_sizes(KernelArguments& c) {
  Value* x = c.tensor(0);
  const int64_t axis = c.axis(2, x);
  if (c.is_known(1)) return parts(c, x, axis, c.ints(1));
  return c.add_all("split", {x, c.shape(1)}, {{"axis", axis}}, c.results().size());
}

Values unbind(KernelArguments& c) {
  Value* x = c.tensor(0);
  const int64_t axis = c.axis(1, x);
  Values result;
  for (size_t i = 0; i < c.results().size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    result.push_back(squeeze(c, slice(c, x, axis, index, index + 1), axis));
  }
  return result;
}

// Vectors of no elements are left out, whatever the others are.
Values cat(KernelArguments& c) {
  Values joined;
  const Values tensors = c.tensors(0);
  for (Value* x : tensors) {
    c.check(x != nullptr, "a tensor of the list is None");
    if (c.rank(x) != 1 || !x->shape()[0].is(0)) joined.push_back(x);
  }
  c.check(!tensors.empty(), "there is nothing to join");
  const DType dtype = common_dtype(tensors);
  if (joined.empty()) return {c.cast(tensors[0], dtype)};
  const int64_t axis = c.axis(1, joined[0]);
  for (Value*& x : joined) x = c.cast(x, dtype);
  return {joined.size() == 1 ? joined[0] : c.add("concat", joined, {{"axis", axis}})};
}

Values stack(KernelArguments& c) {
  Values tensors = c.tensors(0);
  c.check(!tensors.empty(), "there is nothing to join");
  for (const Value* x : tensors) c.check(x != nullptr, "a tensor of the list is None");
  const int64_t axis = c.normalize(c.i(1), c.rank(tensors[0]) + 1);
  const DType dtype = common_dtype(tensors);
  for (Value*& x : tensors) x = c.cast(x, dtype);
  return {c.add("stack", tensors, {{"axis", axis}})};
}

// Windows of an axis, along a new last axis.
Values unfold(KernelArguments& c) {
  Value* x = at_least_1d(c, c.tensor(0));
  const int64_t axis = c.axis(1, x), size = c.i(2), step = c.i(3), rank = c.rank(x);
  const int64_t extent = known_extent(c, x, axis);
  c.check(size >= 0 && size <= extent && step > 0, "windows of {} every {} in an axis of {}", size,
          step, extent);
  const int64_t count = (extent - size) / step + 1;
  Value* starts =
      c.add("mul", {numbers_to(c, c.integer(count, DType::kI64)), c.integer(step, DType::kI64)});
  Value* places =
      c.add("add", {unsqueeze(c, starts, {1}), numbers_to(c, c.integer(size, DType::kI64))});
  Value* windows = c.add("gather", {x, places}, {{"axis", axis}});
  Ints perm = iota(0, rank + 1);
  perm.erase(perm.begin() + axis + 1);
  perm.push_back(axis + 1);
  windows = transpose(c, windows, perm);
  return {c.rank(c.tensor(0)) == 0 ? reshape(c, windows, {size}) : windows};
}

// Elements of the flat tensor, at places that are sums over the axes.
Values as_strided(KernelArguments& c) {
  const std::vector<uint8_t>& order = c.declared(0).dim_order;
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != i) c.unsupported("strides over a tensor whose axes are not in order in memory");
  const Ints size = c.ints(1), stride = c.ints(2);
  c.check(size.size() == stride.size(), "{} sizes and {} strides", size.size(), stride.size());
  Value* places = c.integer(c.maybe_i(3).value_or(0), DType::kI64);
  const auto rank = std::ssize(size);
  for (int64_t axis = 0; axis < rank; ++axis) {
    c.check(size[place(axis)] >= 0 && stride[place(axis)] >= 0, "size {} and stride {}",
            size[place(axis)], stride[place(axis)]);
    Value* along = c.add("mul", {numbers_to(c, c.integer(size[place(axis)], DType::kI64)),
                                 c.integer(stride[place(axis)], DType::kI64)});
    places = c.add("add", {unsqueeze(c, places, {axis}), along});
  }
  return {c.add("gather", {reshape(c, c.tensor(0), {-1}), places}, {{"axis", 0}})};
}

// Elements of a diagonal of two axes, along a new last axis.
Values diagonal(KernelArguments& c) {
  Value* x = c.tensor(0);
  const int64_t offset = c.i(1), rank = c.rank(x), row = c.axis(2, x), column = c.axis(3, x);
  c.check(row != column, "both axes are {}", row);
  c.check(std::abs(static_cast<double>(offset)) < 0x1p31, "the diagonal {}", offset);
  Ints perm;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (axis != row && axis != column) perm.push_back(axis);
  perm.push_back(row);
  perm.push_back(column);
  const int64_t rows = known_extent(c, x, row), columns = known_extent(c, x, column);
  c.check(rows <= INT32_MAX && columns <= INT32_MAX, "axes of {} and {} elements", rows, columns);
  const int64_t below = std::max<int64_t>(-offset, 0), right = std::max<int64_t>(offset, 0);
  const int64_t length = std::max<int64_t>(std::min(rows - below, columns - right), 0);
  Ints flat;
  for (size_t i = 0; i + 2 < perm.size(); ++i) {
    const Dim& extent = x->shape()[place(perm[i])];
    flat.push_back(extent.known() ? extent.value() : -1);
  }
  c.check(std::count(flat.begin(), flat.end(), -1) <= 1 || rows * columns > 0,
          "more than one extent is not known");
  flat.push_back(rows * columns);
  Value* along = c.add(
      "mul", {numbers_to(c, c.integer(length, DType::kI64)), c.integer(columns + 1, DType::kI64)});
  Value* places = c.add("add", {along, c.integer(below * columns + right, DType::kI64)});
  return {c.add("gather", {reshape(c, transpose(c, x, perm), flat), places}, {{"axis", rank - 2}})};
}

// Channels are the third axis from the end; those before it are batches.
Values shuffle(KernelArguments& c) {
  Value* x = c.tensor(0);
  const int64_t rank = c.rank(x);
  c.check(rank >= 3, "rank {} is below 3", rank);
  Ints shape;
  if (rank != 4) {
    shape = known_shape(c, x);
    x = reshape(c, x, {-1, shape[place(rank - 3)], shape[place(rank - 2)], shape[place(rank - 1)]});
  }
  Value* y = c.add(c.engine_op, {x}, {{"block", c.i(1)}, {"mode", "CRD"}});
  if (rank == 4) return {y};
  const Ints moved = known_shape(c, y);
  shape.resize(place(rank - 3));
  shape.insert(shape.end(), moved.begin() + 1, moved.end());
  return {reshape(c, y, shape)};
}

const KernelConverters kAtenShape{
    {{"aten::_reshape_copy.out", "aten::_unsafe_view.out", "aten::view", "aten::view_copy.out",
      "executorch_prim::et_view.default"},
     view},
    {{"aten::as_strided", "aten::as_strided_copy.out"}, as_strided},
    {"aten::cat.out", cat},
    {{"aten::diagonal", "aten::diagonal_copy.out"}, diagonal},
    {"aten::narrow_copy.out", narrow_copy},
    {{"aten::permute", "aten::permute_copy.out"}, permute},
    {"aten::pixel_shuffle.out", shuffle, "depth_to_space"},
    {"aten::pixel_unshuffle.out", shuffle, "space_to_depth"},
    {{"aten::select.int", "aten::select_copy.int_out"}, select_copy},
    {"aten::select_scatter.out", select_scatter},
    {{"aten::slice.Tensor", "aten::slice_copy.Tensor_out"}, slice_copy},
    {"aten::slice_scatter.out", slice_scatter},
    {"aten::split_copy.Tensor_out", split_copy},
    {{"aten::split_with_sizes", "aten::split_with_sizes_copy.out"}, split_with_sizes},
    {{"aten::squeeze.dim", "aten::squeeze_copy.dim_out"}, squeeze_dim},
    {{"aten::squeeze.dims", "aten::squeeze_copy.dims_out"}, squeeze_dims},
    {"aten::squeeze_copy.out", squeeze_all},
    {"aten::stack.out", stack},
    {"aten::t_copy.out", t_copy},
    {"aten::transpose_copy.int_out", transpose_copy},
    {"aten::unbind_copy.int_out", unbind},
    {"aten::unfold_copy.out", unfold},
    {{"aten::unsqueeze", "aten::unsqueeze_copy.out"}, unsqueeze_copy},
};

}  // namespace

}  // namespace anymps::executorch
