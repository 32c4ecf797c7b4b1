// SPDX-License-Identifier: Apache-2.0
// Operators of torch that read or write elements by index tensors and masks.
#include <algorithm>

#include "importers/executorch/aten.h"

namespace anymps::executorch {

namespace {

// The index tensors of index and index_put, one for each axis that they speak of.
struct Indices {
  Ints axes;      // of the tensor, rising
  Values places;  // i64 or i32, of one common shape
  bool together =
      false;  // the axes are neighbours: the indexed axes come where they were, else first
};

bool is_mask(const Value* index) {
  return index->dtype() == DType::kBool || index->dtype() == DType::kU8;
}

// A mask stands for as many index vectors as it has axes.
Values places_of(KernelArguments& c, Value* index) {
  if (!is_mask(index)) return {c.cast(index, DType::kI64)};
  Value* found = c.add("nonzero", {c.cast(index, DType::kBool)});  // [rank, n]
  Values result;
  for (int64_t axis = 0; axis < c.rank(index); ++axis)
    result.push_back(squeeze(c, slice(c, found, 0, axis, axis + 1), 0));
  return result;
}

Indices indices(KernelArguments& c, const Value* x, size_t argument) {
  Indices result;
  int64_t axis = 0;
  for (Value* index : c.tensors(argument)) {
    if (!index) {
      ++axis;
      continue;
    }
    if (is_mask(index)) c.check(c.rank(index) > 0, "a mask without axes is not supported");
    for (Value* places : places_of(c, index)) {
      result.axes.push_back(axis++);
      result.places.push_back(places);
    }
  }
  c.check(axis <= c.rank(x), "indices for {} axes, the tensor has {}", axis, c.rank(x));
  c.check(!result.axes.empty(), "there are no indices");
  result.together =
      result.axes.back() - result.axes.front() + 1 == static_cast<int64_t>(result.axes.size());
  if (result.places.size() == 1) return result;
  Value* zero = nullptr;  // of the common shape
  for (Value* places : result.places) {
    Value* none = c.add("sub", {places, places});
    zero = zero ? c.add("add", {zero, none}) : none;
  }
  for (Value*& places : result.places) places = c.add("add", {places, zero});
  return result;
}

// Axes of the tensor with those that are indexed first.
Ints indexed_first(const Indices& at, int64_t rank) {
  Ints perm = at.axes;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (std::find(at.axes.begin(), at.axes.end(), axis) == at.axes.end()) perm.push_back(axis);
  return perm;
}

Value* tuples(KernelArguments& c, const Indices& at) {
  const int64_t last = c.rank(at.places[0]);
  return c.add("stack", at.places, {{"axis", last}});
}

// From [indexed…, rest…] to where torch has the indexed axes.
Ints back_in_place(const Indices& at, int64_t indexed, int64_t rest) {
  const int64_t before = at.together ? at.axes.front() : 0;
  Ints perm = iota(indexed, indexed + before);
  for (int64_t axis : iota(0, indexed)) perm.push_back(axis);
  for (int64_t axis : iota(indexed + before, indexed + rest)) perm.push_back(axis);
  return perm;
}

Ints inverse(const Ints& perm) {
  Ints result(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) result[place(perm[i])] = static_cast<int64_t>(i);
  return result;
}

Values index(KernelArguments& c) {
  Value* x = c.tensor(0);
  const Indices at = indices(c, x, 1);
  if (at.axes.size() == 1) return {c.add("gather", {x, at.places[0]}, {{"axis", at.axes[0]}})};
  Value* first = transpose(c, x, indexed_first(at, c.rank(x)));
  Value* found = c.add("gather_nd", {first, tuples(c, at)});
  const int64_t indexed = c.rank(at.places[0]);
  const int64_t rest = c.rank(x) - static_cast<int64_t>(at.axes.size());
  return {transpose(c, found, back_in_place(at, indexed, rest))};
}

// The shape of x[indices], as a vector of the graph.
Value* indexed_shape(KernelArguments& c, Value* x, const Indices& at) {
  const int64_t rank = c.rank(x);
  const auto count = static_cast<int64_t>(at.axes.size());
  Values parts;
  const auto rest = [&](int64_t from, int64_t to) {
    for (int64_t axis = from; axis < to; ++axis)
      if (std::find(at.axes.begin(), at.axes.end(), axis) == at.axes.end())
        parts.push_back(c.add("shape", {x}, {{"start", axis}, {"end", axis + 1}}));
  };
  if (at.together) rest(0, at.axes.front());
  parts.push_back(c.add("shape", {at.places[0]}));
  rest(at.together ? at.axes.front() + count : 0, rank);
  return c.add("concat", parts, {{"axis", 0}});
}

Values index_put(KernelArguments& c) {
  Value *x = c.tensor(0), *values = c.cast(c.tensor(2), x->dtype());
  const bool accumulate = c.b(3);
  const Indices at = indices(c, x, 1);
  const int64_t rank = c.rank(x), indexed = c.rank(at.places[0]);
  const int64_t rest = rank - static_cast<int64_t>(at.axes.size());
  values = c.add("expand", {values, indexed_shape(c, x, at)});
  values = transpose(c, values, inverse(back_in_place(at, indexed, rest)));
  const Ints perm = indexed_first(at, rank);
  Value* written = c.add("scatter_nd", {values, tuples(c, at), transpose(c, x, perm)},
                         {{"mode", accumulate ? "add" : "set"}});
  return {transpose(c, written, inverse(perm))};
}

Values index_select(KernelArguments& c) {
  Value* x = c.tensor(0);
  const int64_t axis = c.axis(1, x);
  Value* index = reshape(c, c.tensor(2), {-1});
  Value* y = c.add("gather", {at_least_1d(c, x), index}, {{"axis", axis}});
  return {c.rank(x) == 0 ? reshape(c, y, {}) : y};
}

Values embedding(KernelArguments& c) {
  return {c.add("gather", {c.tensor(0), c.tensor(1)}, {{"axis", 0}})};
}

Values nonzero(KernelArguments& c) {
  return {c.add("nonzero", {c.tensor(0)}, {{"axes_first", false}})};
}

Values masked_fill(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {c.add("where", {c.cast(c.tensor(1), DType::kBool), operand(c, 2, x->dtype()), x})};
}

// x and the mask broadcast together, both flat.
Values masked_select(KernelArguments& c) {
  Value *x = c.tensor(0), *mask = c.cast(c.tensor(1), DType::kBool);
  Value* wide_x = expand_like(c, x, mask);
  Value* wide_mask = expand_like(c, mask, x);
  return {c.add("compress", {reshape(c, wide_x, {-1}), reshape(c, wide_mask, {-1})})};
}

// The elements of a source, in turn, where the mask is true.
Values masked_scatter(KernelArguments& c) {
  Value *x = c.tensor(0), *mask = c.cast(c.tensor(1), DType::kBool);
  Value* source = reshape(c, c.cast(c.tensor(2), x->dtype()), {-1});
  mask = expand_like(c, mask, x);
  x = expand_like(c, x, mask);
  if (source->shape()[0].is(0)) return {x};
  Value* flat = c.cast(reshape(c, mask, {-1}), DType::kI64);
  Value* taken = c.add("cumsum", {flat}, {{"axis", 0}, {"exclusive", true}});
  // Places without the mask may be past the end, and are not used.
  Value* last = with_scalar(c, "sub", extent_of(c, source, 0), 1);
  taken = c.add("where", {reshape(c, mask, {-1}), taken, c.add("min", {taken, last})});
  Value* found = c.add("gather", {source, taken}, {{"axis", 0}});
  found = c.add("reshape", {found, c.add("shape", {x})}, {{"allow_zero", true}});
  return {c.add("where", {mask, found, x})};
}

const KernelConverter kTable[] = {
    {"aten::embedding.out", embedding},
    {"aten::index.Tensor_out", index},
    {"aten::index_put.out", index_put},
    {"aten::index_put_", index_put},
    {"aten::index_select.out", index_select},
    {"aten::masked_fill.Scalar_out", masked_fill},
    {"aten::masked_fill.Tensor_out", masked_fill},
    {"aten::masked_scatter.out", masked_scatter},
    {"aten::masked_select.out", masked_select},
    {"aten::nonzero.out", nonzero},
};

}  // namespace

std::span<const KernelConverter> aten_index_kernels() { return kTable; }

}  // namespace anymps::executorch
