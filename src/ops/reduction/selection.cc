// SPDX-License-Identifier: Apache-2.0
// Ops whose result is as long as the data say: nonzero and compress.
#include "ops/gradient_parts.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

std::vector<Shape> measure_nonzero(const MeasureContext& ctx) {
  const MeasureInput& x = ctx.inputs[0];
  const int64_t count = x.desc.count();
  const int64_t found = dispatch<kAny>(x.desc.dtype, [&]<typename T>() {
    using C = Compute<T>;
    int64_t set = 0;
    for (int64_t i = 0; i < count; ++i)
      if constexpr (std::is_same_v<T, bool>)
        set += x.as<uint8_t>()[i] != 0;
      else
        set += static_cast<C>(x.as<T>()[i]) != C(0);
    return set;
  });
  if (ctx.attrs.b("axes_first")) return {Shape{x.desc.rank(), found}};
  return {Shape{found, x.desc.rank()}};
}

// The axis to choose along, or -1 for the flattened tensor.
int64_t chosen_axis(const Attrs& attrs, int64_t rank) {
  const std::vector<int64_t>& axes = attrs.ints("axes");
  if (axes.empty()) return -1;
  require(axes.size() == 1, "[compress] axes must name one axis or none, there are {}",
          axes.size());
  return normalize_axis(axes[0], rank, "compress");
}

void infer_compress(InferContext& ctx) {
  ctx.check(ctx.rank(1) == 1, "condition must have rank 1, it has rank {}", ctx.rank(1));
  const int64_t axis = chosen_axis(ctx.attrs, ctx.rank(0));
  if (axis < 0) return ctx.set(0, {ctx.fresh("n")});
  Dims shape = ctx.shape(0);
  shape[axis] = ctx.fresh("n");
  ctx.set(0, std::move(shape));
}

std::vector<Shape> measure_compress(const MeasureContext& ctx) {
  const TensorDesc& x = ctx.inputs[0].desc;
  const int64_t axis = chosen_axis(ctx.attrs, x.rank());
  const int64_t extent = axis < 0 ? x.count() : x.shape[axis];
  const int64_t length = ctx.inputs[1].desc.count();
  const auto* condition = ctx.inputs[1].as<uint8_t>();
  int64_t taken = 0;
  for (int64_t i = 0; i < length; ++i) {
    taken += condition[i] != 0;
    require(i < extent || condition[i] == 0,
            "[compress] condition is true at {}, the axis has the extent {}", i, extent);
  }
  if (axis < 0) return {Shape{taken}};
  Shape shape = x.shape;
  shape[axis] = taken;
  return {shape};
}

}  // namespace

OP(nonzero)
    .doc("Where x is not 0, in row-major order: one index of x's rank for each such element.")
    .formula("x[y[:, i]] != 0")
    .mps("nonZeroIndicesOfTensor:name:")
    .input("x", kAny)
    .output("y", "i64")
    .attr("axes_first", true, "y is [rank, n]; otherwise [n, rank]")
    .infer([](InferContext& ctx) {
      const Dim n = ctx.fresh("n"), rank = ctx.rank(0);
      ctx.set(0, ctx.attrs.b("axes_first") ? Dims{rank, n} : Dims{n, rank});
    })
    .measure(measure_nonzero)
    .sample({"matrix", {{3, 5}}, {}})
    .sample({"rows", {{2, 3, 4}}, {{"axes_first", false}}})
    .sample({"vector", {{40}}, {}})
    .sample({"scalar", {{}}, {}})
    .sample({"empty", {{0, 3}}, {}});

OP(compress)
    .doc(
        "The slices along an axis at which the condition is true, or the elements of the flattened "
        "tensor. A condition that is shorter than the axis is false from its end on.")
    .formula("y = x[condition] along axis")
    .input("x", kEvery)
    .input("condition", kBoolean, "C")
    .output("y")
    .attr("axes", kNoInts, "the one axis to choose along; none: x is flattened")
    .infer(infer_compress)
    .measure(measure_compress)
    .sample({"flat", {{3, 2}, {5}}, {}, {{1, {0, 1, 0, 0, 1}}}})
    .sample({"rows", {{3, 2}, {3}}, {{"axes", Ints{0}}}, {{1, {0, 1, 1}}}})
    .sample({"columns", {{3, 2}, {2}}, {{"axes", Ints{-1}}}, {{1, {0, 1}}}})
    .sample({"short", {{4, 2}, {1}}, {{"axes", Ints{0}}}, {{1, {1}}}})
    .sample({"nothing", {{3, 2}, {3}}, {{"axes", Ints{0}}}, {{1, {0, 0, 0}}}})
    .sample({"empty", {{3, 0}, {3}}, {{"axes", Ints{0}}}, {{1, {1, 0, 1}}}});

ZERO_GRADIENT(nonzero, "gives places");
COMPLEX_GRADIENT(compress) { ctx.set(0, move_back(ctx)); }

}  // namespace anymps
