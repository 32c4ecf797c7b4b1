// SPDX-License-Identifier: Apache-2.0
// Random numbers of the Mersenne twister: slow, one after the other, and the same as NumPy's for
// the same seed, by which models with their own seed are compared.
#include "ops/gradient.h"
#include "ops/shape_rules.h"

namespace anymps {

OP(random_mersenne)
    .doc(
        "Uniform numbers in [0, 1) of 53 bits from the Mersenne twister MT19937: those that "
        "NumPy's RandomState(seed).random_sample(shape) gives. The same seed gives the same "
        "numbers each time.")
    .formula("y[i] = (2^26 * (word[2i] >> 5) + (word[2i + 1] >> 6)) / 2^53")
    .ints("shape", "the shape")
    .output("y", "f64")
    .attr("seed", 0, "in [0, 2^32)")
    .reference_only("each number follows from those before it")
    .infer([](InferContext& ctx) {
      const int64_t seed = ctx.attrs.i("seed");
      ctx.check(seed >= 0 && seed <= INT64_C(0xffffffff), "seed {} is not in [0, 2^32)", seed);
      const std::optional<Dims> shape = ctx.ints(0, "shape");
      if (!shape) return set_fresh_shape(ctx, 0, DType::kF64);
      for (const Dim& extent : *shape)
        ctx.check(!extent.known() || extent.value() >= 0, "shape {} has a negative extent",
                  to_string(*shape));
      ctx.set(0, DType::kF64, *shape);
    })
    .sample({"matrix", {}, {{"shape", Ints{3, 5}}, {"seed", 7}}})
    .sample({"input", {{2}}, {}, {{0, {2, 3}}}})
    .sample({"scalar", {}, {}})
    .sample({"empty", {}, {{"shape", Ints{0, 2}}}});

ZERO_GRADIENT(random_mersenne, "its numbers come from a seed");

}  // namespace anymps
