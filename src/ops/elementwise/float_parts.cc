// SPDX-License-Identifier: Apache-2.0
// Ops that look at a float's parts: its neighbours, its fraction and exponent, and whether it is a
// number at all.
#include <limits>

#include "ops/elementwise/elementwise_infer.h"
#include "ops/gradient.h"

namespace anymps {

constexpr double kLargest = std::numeric_limits<double>::infinity();

OP(nan_to_num)
    .doc("NaN and the infinities replaced by numbers.")
    .formula("y = x is NaN ? nan : x is inf ? posinf : x is -inf ? neginf : x")
    .input("x", kFloat)
    .output("y")
    .attr("nan", 0.0, "for NaN")
    .attr("posinf", kLargest, "for infinity; itself infinite: the largest number of x's dtype")
    .attr("neginf", -kLargest, "for minus infinity; itself infinite: the lowest number")
    .facts(kElementwise | kTypeBound)
    .infer(infer_elementwise)
    .tolerance({.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0});

// A half that went through f32 would have other neighbours: no tile function, so no fact.
OP(nextafter)
    .doc("The number of the dtype that comes after a on the way to b; b where they are equal.")
    .formula("y = nextafter(a, b)")
    .input("a", kFloat)
    .input("b", kFloat)
    .output("y")
    .facts(kTypeBound)
    .reference_only("a step in the last bit is not what a loop spends its time on")
    .infer(infer_elementwise)
    .tolerance({.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0})
    .sample({"matrix", {{3, 17}, {3, 17}}, {}})
    .sample({"broadcast", {{4, 1}, {5}}, {}})
    .sample({"scalar", {{}, {}}, {}})
    .sample({"empty", {{0, 3}, {3}}, {}});

OP(frexp)
    .doc(
        "Fraction and exponent. Of 0, NaN and the infinities the fraction is x and the exponent 0.")
    .formula("x = fraction * 2^exponent, with 0.5 <= |fraction| < 1")
    .input("x", kFloat)
    .output("fraction")
    .output("exponent", "i32")
    .reference_only("a few bit operations an element, and rare")
    .infer([](InferContext& ctx) {
      ctx.set(0, ctx.shape(0));
      if (ctx.output_count() > 1) ctx.set(1, DType::kI32, ctx.shape(0));
    })
    .domain(-100, 100)
    .tolerance({.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0})
    .sample({"matrix", {{3, 17}}, {}})
    .sample({"scalar", {{}}, {}})
    .sample({"empty", {{0, 3}}, {}});

GRADIENT(nan_to_num) {
  const Term x = ctx.x();
  ctx.set(0, where(x.op("is_finite"), ctx.dy(), 0));
}
GRADIENT(nextafter) { ctx.set(0, ctx.dy()); }
GRADIENT(frexp) {
  const Term dy = ctx.dy(0);
  if (!dy) return;
  const Term exponent =
      ctx.add_all("frexp", {ctx.x()}, {}, 2)[1].op("cast", {{"dtype", ctx.x().dtype()}});
  ctx.set(0, ctx.add("ldexp", {dy, -exponent}));
}

}  // namespace anymps
