// SPDX-License-Identifier: Apache-2.0
// Operators of torch that read or write single elements along an axis, and bags of embeddings.
#include <limits>

#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

// A tensor, index and source with an axis at least, and back.
struct Along {
  Value *x = nullptr, *index = nullptr;
  int64_t axis = 0;
  bool scalar = false;
};

Along along(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {at_least_1d(c, x), at_least_1d(c, c.cast(c.tensor(2), DType::kI64)), c.axis(1, x),
          c.rank(x) == 0};
}

Value* as_given(KernelArguments& c, const Along& at, Value* y) {
  return at.scalar ? reshape(c, y, {}) : y;
}

Values gather(KernelArguments& c) {
  const Along at = along(c);
  Value* y = c.add("gather_along_axis", {at.x, at.index}, {{"axis", at.axis}});
  return {c.rank(c.tensor(2)) == 0 ? reshape(c, y, {}) : y};
}

// The part of a source that the index speaks of: its first elements along every axis.
Value* part_of(KernelArguments& c, Value* source, Value* index) {
  source = at_least_1d(c, source);
  c.check(c.rank(source) == c.rank(index), "the source has rank {}, the index {}", c.rank(source),
          c.rank(index));
  if (source->type.static_shape() && index->type.static_shape() &&
      source->shape() == index->shape())
    return source;
  Value* zeros = c.graph.ints(Ints(place(c.rank(index)), 0));
  return c.add("slice", {source, zeros, c.add("shape", {index})});
}

Value* write(KernelArguments& c, Value* data, const Along& at, Value* updates, const char* mode) {
  return c.add("scatter_along_axis", {updates, at.index, data},
               {{"axis", at.axis}, {"mode", mode}});
}

Values scatter(KernelArguments& c) {
  const Along at = along(c);
  Value* source = part_of(c, c.cast(c.tensor(3), at.x->dtype()), at.index);
  return {as_given(c, at, write(c, at.x, at, source, c.engine_op))};
}

Values scatter_value(KernelArguments& c) {
  const Along at = along(c);
  Value* updates = expand_like(c, c.number(3, at.x->dtype()), at.index);
  return {as_given(c, at, write(c, at.x, at, updates, "set"))};
}

struct Reduction {
  const char *name, *mode;
  double start;  // what changes nothing
};

const Reduction kReductions[] = {
    {"sum", "add", 0},
    {"mean", "add", 0},
    {"prod", "mul", 1},
    {"amax", "max", -std::numeric_limits<double>::infinity()},
    {"amin", "min", std::numeric_limits<double>::infinity()},
};

// The lowest or highest integer instead of an infinity.
Value* start_of(KernelArguments& c, const Reduction& reduction, DType dtype) {
  return c.cast(c.graph.scalar(DType::kF64, reduction.start), dtype);
}

// Without include_self, elements that are written to start from what changes nothing.
Values scatter_reduce(KernelArguments& c) {
  const Along at = along(c);
  const DType dtype = at.x->dtype();
  const std::string kind = c.s(4);
  const bool include_self = c.b(5);
  const Reduction* reduction = nullptr;
  for (const Reduction& one : kReductions)
    if (kind == one.name) reduction = &one;
  c.check(reduction != nullptr, "reduce '{}' is not known", kind);
  Value* source = part_of(c, c.cast(c.tensor(3), dtype), at.index);
  Value* data = at.x;
  if (!include_self)
    data = write(c, data, at, expand_like(c, start_of(c, *reduction, dtype), at.index), "set");
  Value* y = write(c, data, at, source, reduction->mode);
  if (kind != "mean") return {as_given(c, at, y)};
  Value* one = c.integer(1, dtype);
  Value* counts = expand_like(c, c.integer(include_self ? 1 : 0, dtype), at.x);
  counts = c.add("max", {write(c, counts, at, expand_like(c, one, at.index), "add"), one});
  const NamedAttrs floor = {{"rounding", "floor"}};
  return {as_given(c, at, c.add("div", {y, counts}, is_int(dtype) ? floor : NamedAttrs{}))};
}

// Rows of a table, summed or averaged over bags of indices. The other results are what the gradient
// needs; a program that reads them is refused.
Values embedding_bag(KernelArguments& c) {
  Value* weights = c.tensor(0);
  Value *flat = c.cast(c.tensor(1), DType::kI64), *offsets = c.cast(c.tensor(2), DType::kI64);
  const int64_t mode = c.i(4);
  Value* scales = c.maybe_tensor(6);
  if (mode == 2) c.unsupported("mode max");
  c.check(mode == 0 || mode == 1, "mode {} is not known", mode);
  if (c.i(8) >= 0) c.unsupported("padding_idx {}", c.i(8));
  if (c.b(7)) offsets = slice(c, offsets, 0, 0, -1);
  const DType wide = wide_dtype(weights->dtype());
  Value* rows = c.cast(c.add("gather", {weights, flat}, {{"axis", 0}}), wide);
  if (scales) rows = c.add("mul", {rows, unsqueeze(c, c.cast(scales, wide), {1})});
  // An index is in the bag that begins last before it.
  Value* numbers = unsqueeze(c, numbers_to(c, extent_of(c, flat, 0)), {1});
  Value* begun = c.cast(c.add("less_equal", {unsqueeze(c, offsets, {0}), numbers}), DType::kI64);
  Value* bags = with_scalar(
      c, "sub", c.add("reduce_sum", {begun}, {{"axes", Ints{1}}, {"keep_dims", false}}), 1);
  Value* count = c.add("shape", {offsets});
  Value* width = c.add("shape", {weights}, {{"start", 1}, {"end", 2}});
  Value* zeros = c.add("fill", {c.add("concat", {count, width}), c.graph.scalar(wide, 0)});
  Value* y = c.add("scatter", {rows, bags, zeros}, {{"mode", "add"}, {"axis", 0}});
  Value* one = c.integer(1, DType::kI64);
  Value* sizes =
      c.add("scatter", {expand_like(c, one, flat), bags, c.add("sub", {offsets, offsets})},
            {{"mode", "add"}, {"axis", 0}});
  if (mode == 1) y = c.add("div", {y, unsqueeze(c, c.cast(c.add("max", {sizes, one}), wide), {1})});
  return {y, nullptr, nullptr, nullptr};
}

const KernelConverters kAtenScatter{
    {"aten::_embedding_bag.out", embedding_bag}, {"aten::gather.out", gather},
    {"aten::scatter.src_out", scatter, "set"},   {"aten::scatter.value_out", scatter_value},
    {"aten::scatter_add.out", scatter, "add"},   {"aten::scatter_reduce.two_out", scatter_reduce},
};

}  // namespace

}  // namespace anymps::executorch
