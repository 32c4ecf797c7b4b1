// SPDX-License-Identifier: Apache-2.0
// Bands of matrices.
#include "ops/axis_input.h"
#include "ops/gradient.h"

namespace anymps {

OP(band_part)
    .doc(
        "Keeps the diagonals of the last two axes from `lower` below the main one to `upper` above "
        "it, and zeroes the rest. A negative number keeps all on that side.")
    .formula("y[.., i, j] = x[.., i, j] where i - j <= lower and j - i <= upper, else 0")
    .mps("bandPartWithTensor:numLower:numUpper:name:")
    .mps("bandPartWithTensor:numLowerTensor:numUpperTensor:name:")
    .input("x", kAny)
    .integer("lower", -1, "diagonals below the main one")
    .integer("upper", -1, "diagonals above the main one")
    .output("y")
    .facts(kMoves)
    .infer([](InferContext& ctx) {
      ctx.check(ctx.rank(0) >= 2, "x must have rank 2 or more, it has rank {}", ctx.rank(0));
      known_int(ctx, 1, "lower");
      known_int(ctx, 2, "upper");
      ctx.set(0, ctx.shape(0));
    })
    .sample({"band", {{5, 6}}, {{"lower", 1}, {"upper", 2}}})
    .sample({"lower", {{2, 4, 3}}, {{"upper", 0}}})
    .sample({"upper", {{2, 4, 3}}, {{"lower", 0}}})
    .sample({"all", {{3, 3}}, {}})
    .sample({"inputs", {{4, 4}, {}, {1}}, {}, {{1, {0}}, {2, {1}}}})
    .sample({"empty", {{2, 0, 3}}, {{"lower", 1}}});

COMPLEX_GRADIENT(band_part) {
  std::vector<Term> inputs{ctx.dy()};
  for (size_t i = 1; i < 3; ++i) inputs.push_back(ctx.has(i) ? ctx.x(i) : Term());
  ctx.set(0, ctx.add("band_part", inputs, ctx.attrs().named()));
}

}  // namespace anymps
