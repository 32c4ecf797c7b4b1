// SPDX-License-Identifier: Apache-2.0
// Products with weights that are stored in few bits and widened on the way: what large language
// models run on.
#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

namespace {

void infer_weight_only(InferContext& ctx) {
  const int64_t bits = ctx.attrs.i("bits"), group = ctx.attrs.i("group");
  ctx.check(bits == 4 || bits == 8, "bits is {}, must be 4 or 8", bits);
  ctx.check(ctx.rank(0) >= 1, "x is a scalar, must have an axis");
  expect_rank(ctx, 1, 2, 2);
  Dims y = ctx.shape(0);
  const Dim depth = y.back(), &columns = ctx.shape(1)[0];
  if (depth.known()) {
    const int64_t k = depth.value();
    ctx.check(bits == 8 || k % 2 == 0, "x has rows of {}, must be even", k);
    ctx.check(group == 0 || (group > 0 && k % group == 0 && (bits == 8 || group % 2 == 0)),
              "group is {}, must be 0 or {}divide the {} of a row", group,
              bits == 4 ? "even and " : "", k);
    expect_shape(ctx, 1, {columns, bits == 4 ? Dim(k / 2) : depth});
    const Dims numbers = group == 0 ? Dims{columns} : Dims{Dim(k / group), columns};
    expect_shape(ctx, 2, numbers);
    expect_shape(ctx, 3, numbers);
  }
  y.back() = columns;
  ctx.set(0, y);
}

double weight_only_cost(const Attrs&, const std::vector<Shape>& in, const std::vector<Shape>&) {
  return 2 * static_cast<double>(element_count(in[0])) * static_cast<double>(in[1][0]);
}

constexpr DTypeSet kWeighted = kFloat & ~bit(DType::kF64);

}  // namespace

OP(weight_only_matmul)
    .doc(
        "The product of x and the transpose of weights in 8 or 4 bits, with a scale, and if given "
        "an offset, for each row of w or each group of a row's elements. Two of 4 bits are in a "
        "byte of either type, the first in its upper half, and count from -8.")
    .formula("y[.., n] = sum over k of x[.., k] * (w[n, k] * scales[g(k), n] + zeros[g(k), n])")
    .input("x", kWeighted, "T", "[…, K]")
    .input("w", bit(DType::kI8) | bit(DType::kU8), "W", "[N, K], or [N, K/2] of 4 bits")
    .input("scales", kWeighted, "T", "[N], or [K/group, N]")
    .optional("zeros", kWeighted, "T", "the same; added to the scaled weight")
    .output("y", "T", "[…, N]")
    .attr("bits", 8, "8 or 4")
    .attr("group", 0, "elements that share a scale; 0: all of a row")
    .facts(kProduct)
    .infer(infer_weight_only)
    .cost(weight_only_cost)
    .domain(-1, 1)
    .domain("w", -9, 9)
    .tolerance({.f32 = 2e-5, .f16 = 4e-3, .bf16 = 3e-2})
    .sample({"bytes", {{3, 40}, {5, 40}, {5}}, {}})
    .sample({"groups and offsets", {{2, 3, 36}, {7, 36}, {3, 7}, {3, 7}}, {{"group", 12}}})
    .sample({"four bits", {{1, 72}, {5, 36}, {5}}, {{"bits", 4}}})
    .sample({"four bits in groups", {{70}, {6, 35}, {7, 6}, {7, 6}}, {{"bits", 4}, {"group", 10}}})
    .sample({"many rows", {{20, 32}, {530, 32}, {2, 530}}, {{"group", 16}}})
    .sample({"many rows of four bits",
             {{9, 64}, {33, 32}, {2, 33}, {2, 33}},
             {{"bits", 4}, {"group", 32}}})
    .sample({"no rows", {{0, 4}, {3, 4}, {3}}, {}})
    .sample({"no depth", {{2, 0}, {3, 0}, {3}}, {}});

NO_GRADIENT(weight_only_matmul, "weights in few bits are for inference");

}  // namespace anymps
