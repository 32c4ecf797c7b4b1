// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/operators/aten.h"

#include <algorithm>
#include <numeric>

namespace anymps::executorch {

namespace {

// One level of operands: tensors with axes, scalar tensors, numbers.
struct Level {
  std::optional<DType> dtype;
  void add(DType other) { dtype = dtype ? promote(*dtype, other) : other; }
};

std::optional<DType> combine(const std::optional<DType>& higher,
                             const std::optional<DType>& lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (*higher == DType::kC64) return higher;
  if (is_float(*higher)) return *lower == DType::kC64 ? promote(*higher, *lower) : *higher;
  if (*higher == DType::kBool || is_float(*lower) || *lower == DType::kC64)
    return promote(*higher, *lower);
  return higher;
}

struct Levels {
  Level tensors, scalars, numbers;
  void add(const Value* tensor) {
    const bool scalar = tensor->type.ranked && tensor->shape().empty();
    (scalar ? scalars : tensors).add(tensor->dtype());
  }
  DType result() const {
    const auto dtype = combine(tensors.dtype, combine(scalars.dtype, numbers.dtype));
    return dtype.value_or(DType::kF32);
  }
};

}  // namespace

DType common_dtype(const KernelArguments& c, std::initializer_list<size_t> arguments) {
  Levels levels;
  for (size_t i : arguments) {
    if (c.is_none(i)) continue;
    if (c.is_tensor(i))
      levels.add(c.tensor(i));
    else
      levels.numbers.add(c.number_dtype(i));
  }
  return levels.result();
}

DType common_dtype(const Values& tensors) {
  Levels levels;
  for (const Value* tensor : tensors) levels.add(tensor);
  return levels.result();
}

DType float_dtype(DType dtype) {
  return is_int(dtype) || dtype == DType::kBool ? DType::kF32 : dtype;
}

DType wide_dtype(DType dtype) { return is_half(dtype) ? DType::kF32 : dtype; }

Value* operand(KernelArguments& c, size_t i, DType dtype) {
  return c.is_tensor(i) ? c.cast(c.tensor(i), dtype) : c.number(i, dtype);
}

Ints iota(int64_t first, int64_t last) {
  Ints result(place(std::max<int64_t>(last - first, 0)));
  std::iota(result.begin(), result.end(), first);
  return result;
}

// An empty list as an attribute would say that there is none.
Value* reshape(KernelArguments& c, Value* x, const Ints& shape) {
  const NamedAttrs zeros = {{"allow_zero", true}};
  if (shape.empty()) return c.add("reshape", {x, c.graph.ints({})}, zeros);
  return c.add("reshape", {x}, {{"shape", shape}, {"allow_zero", true}});
}

Value* transpose(KernelArguments& c, Value* x, const Ints& perm) {
  if (perm == iota(0, std::ssize(perm))) return x;
  return c.add("transpose", {x}, {{"perm", perm}});
}

Value* squeeze(KernelArguments& c, Value* x, int64_t axis) {
  return c.add("squeeze", {x}, {{"axes", Ints{axis}}});
}

Value* unsqueeze(KernelArguments& c, Value* x, const Ints& axes) {
  return axes.empty() ? x : c.add("unsqueeze", {x}, {{"axes", axes}});
}

Value* slice(KernelArguments& c, Value* x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  return c.add(
      "slice", {x},
      {{"starts", Ints{start}}, {"ends", Ints{end}}, {"axes", Ints{axis}}, {"steps", Ints{step}}});
}

Value* expand_like(KernelArguments& c, Value* x, Value* like) {
  return c.add("expand", {x, c.add("shape", {like})});
}

Value* constant_ints(KernelArguments& c, const Ints& values, const Ints& shape) {
  return c.graph.constant(Constant::of<int64_t>(Shape(shape.begin(), shape.end()), values));
}

Value* numbers_to(KernelArguments& c, Value* limit) {
  return c.add("range", {c.integer(0, DType::kI64), limit, c.integer(1, DType::kI64)});
}

Value* extent_of(KernelArguments& c, Value* x, int64_t axis) {
  Value* extent = c.add("shape", {x}, {{"start", axis}, {"end", axis + 1}});
  return reshape(c, extent, {});
}

int64_t known_extent(const KernelArguments& c, const Value* x, int64_t axis) {
  const Dim& extent = x->shape()[place(c.normalize(axis, c.rank(x)))];
  if (!extent.known()) c.unsupported("the extent {} of axis {} must be known", extent.str(), axis);
  return extent.value();
}

Ints known_shape(const KernelArguments& c, const Value* x) {
  Ints shape;
  for (int64_t axis = 0; axis < c.rank(x); ++axis) shape.push_back(known_extent(c, x, axis));
  return shape;
}

Value* with_scalar(KernelArguments& c, std::string_view op, Value* x, double number) {
  return c.add(op, {x, c.scalar_like(x, number)});
}

Value* at_least_1d(KernelArguments& c, Value* x) { return c.rank(x) == 0 ? reshape(c, x, {1}) : x; }

Ints spread(const KernelArguments& c, Ints list, size_t count, const char* what) {
  if (list.size() == 1) list.resize(count, list[0]);
  c.check(list.size() == count, "{} has {} entries for {} axes", what, list.size(), count);
  return list;
}

Ints twice(const Ints& list) {
  Ints result = list;
  result.insert(result.end(), list.begin(), list.end());
  return result;
}

}  // namespace anymps::executorch
