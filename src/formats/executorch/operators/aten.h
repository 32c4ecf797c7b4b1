// SPDX-License-Identifier: Apache-2.0
// What the converters of torch's operators share: its rules of type promotion, and small graphs
// that many operators are made of. Shapes that are not known yet stay values of the graph.
#pragma once

#include <initializer_list>

#include "formats/executorch/operators/kernel_call.h"
#include "formats/executorch/operators/promotion.h"

namespace anymps::executorch {

// The dtype that torch computes with: a scalar tensor or a number only counts when it is of a
// higher kind (bool, integer, float, complex) than the tensors with axes. None is left out.
DType common_dtype(const KernelArguments& c, std::initializer_list<size_t> arguments);
DType common_dtype(const Values& tensors);
// The same, and f32 for integers.
DType float_dtype(DType dtype);
// f32 for halves: what several steps are computed in, so that rounding is done once.
DType wide_dtype(DType dtype);

// Argument i, a tensor or a number, in a dtype.
Value* operand(KernelArguments& c, size_t i, DType dtype);

inline size_t place(int64_t axis) { return axis; }
Ints iota(int64_t first, int64_t last);  // [first, last)

Value* reshape(KernelArguments& c, Value* x, const Ints& shape);
Value* transpose(KernelArguments& c, Value* x, const Ints& perm);
Value* squeeze(KernelArguments& c, Value* x, int64_t axis);
Value* unsqueeze(KernelArguments& c, Value* x, const Ints& axes);
// The range [start, end) of an axis.
Value* slice(KernelArguments& c, Value* x, int64_t axis, int64_t start, int64_t end,
             int64_t step = 1);
Value* expand_like(KernelArguments& c, Value* x, Value* like);
Value* constant_ints(KernelArguments& c, const Ints& values, const Ints& shape);
Value* numbers_to(KernelArguments& c, Value* limit);           // 0, 1, … of i64, up to a scalar
Value* extent_of(KernelArguments& c, Value* x, int64_t axis);  // an i64 scalar
int64_t known_extent(const KernelArguments& c, const Value* x, int64_t axis);
Ints known_shape(const KernelArguments& c, const Value* x);
Value* with_scalar(KernelArguments& c, std::string_view op, Value* x, double number);
// x with an axis at least: a scalar as a vector of one.
Value* at_least_1d(KernelArguments& c, Value* x);

// A list that torch lets be given as one number for all of `count` axes.
Ints spread(const KernelArguments& c, Ints list, size_t count, const char* what);
Ints twice(const Ints& list);  // begins and ends alike

}  // namespace anymps::executorch
