// SPDX-License-Identifier: Apache-2.0
// Operators of torch that read or write elements by index tensors and masks.
#include "formats/executorch/operators/aten.h"
#include "formats/executorch/operators/indexing.h"

namespace anymps::executorch {

namespace {

Values index(KernelArguments& c) { return {take_at(c, c.tensor(0), c.tensors(1))}; }

Values index_put(KernelArguments& c) {
  return {put_at(c, c.tensor(0), c.tensors(1), c.tensor(2), c.b(3))};
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

const KernelConverters kAtenIndex{
    {"aten::embedding.out", embedding},
    {"aten::index.Tensor_out", index},
    {"aten::index_put.out", index_put},
    {"aten::index_put_", index_put, "", {0}},
    {"aten::index_select.out", index_select},
    {{"aten::masked_fill.Scalar_out", "aten::masked_fill.Tensor_out"}, masked_fill},
    {"aten::masked_scatter.out", masked_scatter},
    {"aten::masked_select.out", masked_select},
    {"aten::nonzero.out", nonzero},
};

}  // namespace

}  // namespace anymps::executorch
