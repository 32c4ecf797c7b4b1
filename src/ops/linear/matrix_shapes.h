// SPDX-License-Identifier: Apache-2.0
// What the records of linear algebra share: matrices are the last two axes, those before them count
// them.
#pragma once

#include <algorithm>

#include "ops/expect.h"

namespace anymps {

// What a matrix holds where halves are too coarse to be factored.
inline constexpr DTypeSet kMatrix = kPrecise | kComplex;

struct MatrixShape {
  Dims batch;
  Dim rows, columns;
};

inline MatrixShape matrix_shape(const InferContext& ctx, size_t i) {
  const Dims& shape = ctx.shape(i);
  ctx.check(shape.size() >= 2, "input '{}' has shape {}, must have rank 2 at least",
            ctx.op.inputs[i].name, to_string(shape));
  return {Dims(shape.begin(), shape.end() - 2), shape[shape.size() - 2], shape.back()};
}

inline MatrixShape square_shape(const InferContext& ctx, size_t i) {
  MatrixShape p = matrix_shape(ctx, i);
  ctx.check(may_equal(p.rows, p.columns), "input '{}' has shape {}, its matrices must be square",
            ctx.op.inputs[i].name, to_string(ctx.shape(i)));
  return p;
}

inline Dims joined(Dims batch, std::initializer_list<Dim> last) {
  batch.insert(batch.end(), last);
  return batch;
}

// Output i, if it is asked for.
inline void set_if(InferContext& ctx, size_t i, std::optional<DType> dtype, Dims shape) {
  if (i < ctx.output_count()) ctx.set(i, dtype, std::move(shape));
}
inline void set_if(InferContext& ctx, size_t i, Dims shape) {
  set_if(ctx, i, std::nullopt, std::move(shape));
}

// Packed factors: outputs are the matrix, `length` numbers along its diagonal, and info.
inline void set_packed(InferContext& ctx, const MatrixShape& x, const Dim& length) {
  ctx.set(0, ctx.shape(0));
  set_if(ctx, 1, joined(x.batch, {length}));
  set_if(ctx, 2, x.batch);
}
inline void infer_packed(InferContext& ctx) {
  const MatrixShape x = matrix_shape(ctx, 0);
  set_packed(ctx, x, min(x.rows, x.columns));
}

// Equations a @ y = b, or y @ a = b without `left`: the shape of y. `a` may be broadcast.
inline Dims solution_shape(const InferContext& ctx, const MatrixShape& a, size_t b_input,
                           bool left) {
  const MatrixShape b = matrix_shape(ctx, b_input);
  ctx.check(may_equal(a.rows, left ? b.rows : b.columns),
            "'{}' {} does not fit matrices of {} rows", ctx.op.inputs[b_input].name,
            to_string(ctx.shape(b_input)), a.rows.str());
  const Dims batch = broadcast(a.batch, b.batch, ctx.op.name.c_str());
  return left ? joined(batch, {known_of(a.rows, b.rows), b.columns})
              : joined(batch, {b.rows, known_of(a.rows, b.columns)});
}

// Operations that grow with the cube of the extents, for each matrix of the first input.
inline CostFn cubic(double operations) {
  return [operations](const Attrs&, const std::vector<Shape>& in, const std::vector<Shape>&) {
    double count = operations;
    for (const int64_t extent : in[0]) count *= static_cast<double>(extent);
    return count * static_cast<double>(
                       in[0].size() < 2 ? 1 : std::min(in[0].back(), in[0][in[0].size() - 2]));
  };
}

// A random matrix may be near to a singular one, so results are compared with more slack.
inline constexpr Tolerance kMatrixTolerance{.f32 = 2e-4, .f16 = 2e-2, .bf16 = 1e-1, .f64 = 1e-9};

// What factors matrices, or applies their factors.
inline auto cubic_work(double operations) {
  return [operations](OpWriter& op) -> OpWriter& {
    return op.cost(cubic(operations)).tolerance(kMatrixTolerance).no_layout_tests();
  };
}

inline OpWriter& square_samples(OpWriter& op) {
  return op.sample({"3", {{3, 3}}, {}})
      .sample({"batch", {{2, 3, 5, 5}}, {}})
      .sample({"one", {{1, 1}}, {}})
      .sample({"empty", {{0, 3, 3}}, {}})
      .sample({"no rows", {{2, 0, 0}}, {}});
}

// Equations whose matrix is given by its packed factors.
inline auto factored_equations(const char* factors, const char* pivots, const char* b) {
  return [=](OpWriter& op) -> OpWriter& {
    return op.input(factors, kMatrix, "T", "[…, n, n]")
        .input("pivots", kIndex, "I", pivots)
        .input("b", kMatrix, "T", b)
        .output("y")
        .domain(factors, 0.5, 1.5);
  };
}

// The output that says whether a matrix could be factored. Who asks for it gets no error.
inline constexpr const char* kInfo =
    "optional, […]: 0, or where the matrix failed, counted from 1. Who asks for it gets no error, "
    "and NaN as the result";

}  // namespace anymps
