// SPDX-License-Identifier: Apache-2.0
// Logic on bool tensors, and the choices made with it: where, clamp.
#include <cmath>

#include "ops/elementwise/elementwise_record.h"
#include "ops/gradient.h"

namespace anymps {

#define LOGIC(name, text, math) BINARY(name, kBoolean, text, math).facts(kCommutative)

UNARY(logical_not, kBoolean, "True where x is false.", "y = !x")
    .onnx("Not")
    .mps("notWithTensor:name:");
LOGIC(logical_and, "True where both are.", "y = a && b")
    .onnx("And")
    .mps("logicalANDWithPrimaryTensor:secondaryTensor:name:");
LOGIC(logical_or, "True where one is, or both.", "y = a || b")
    .onnx("Or")
    .mps("logicalORWithPrimaryTensor:secondaryTensor:name:");
LOGIC(logical_xor, "True where exactly one is.", "y = a != b")
    .onnx("Xor")
    .mps("logicalXORWithPrimaryTensor:secondaryTensor:name:");
LOGIC(logical_nand, "False where both are true.", "y = !(a && b)")
    .mps("logicalNANDWithPrimaryTensor:secondaryTensor:name:");
LOGIC(logical_nor, "True where neither is.", "y = !(a || b)")
    .mps("logicalNORWithPrimaryTensor:secondaryTensor:name:");
LOGIC(logical_xnor, "True where both are the same.", "y = a == b")
    .mps("logicalXNORWithPrimaryTensor:secondaryTensor:name:");

ELEMENTWISE(where,
            "Elements of a where the condition is true, of b elsewhere; all three broadcast.",
            "y = cond ? a : b")
    .onnx("Where")
    .mps("selectWithPredicateTensor:truePredicateTensor:falsePredicateTensor:name:")
    .input("cond", kBoolean, "C")
    .input("a", kEvery)
    .input("b", kEvery)
    .output("y")
    .facts(kMoves | kNoRounding)
    .tolerance(kExact);

OP(clamp)
    .doc(
        "x limited to [min, max]. A bound is a tensor, or else the attribute; where min is above "
        "max the result is max. NaN stays NaN.")
    .formula("y = min(max(x, min), max)")
    .mps("clampWithTensor:minValueTensor:maxValueTensor:name:")
    .input("x", kReal)
    .optional("min", kReal)
    .optional("max", kReal)
    .output("y")
    .attr("min", -std::numeric_limits<double>::infinity(), "lower bound if there is no tensor")
    .attr("max", std::numeric_limits<double>::infinity(), "upper bound if there is no tensor")
    .facts(kElementwise | kNoRounding)
    .infer([](InferContext& ctx) {
      for (const char* bound : {"min", "max"})
        ctx.check(!std::isnan(ctx.attrs.f(bound)), "attribute '{}' must not be NaN", bound);
      infer_elementwise(ctx);
    })
    .tolerance({.f32 = 1e-7, .f16 = 1e-3, .bf16 = 1e-2, .f64 = 1e-15})
    .domain("min", -1, 0)
    .domain("max", 0, 1)
    .sample({"tensors", {{2, 5}, {5}, {}}, {}, {}})
    .sample(
        {"attributes", {{3, 7}, Sample::absent, Sample::absent}, {{"min", -1.0}, {"max", 1.0}}, {}})
    .sample({"max_tensor", {{4, 3}, Sample::absent, {4, 1}}, {{"min", -1.0}}, {}})
    .sample({"no_bounds", {{6}, Sample::absent, Sample::absent}, {}, {}})
    .sample({"empty", {{0, 3}, Sample::absent, Sample::absent}, {{"min", 0.0}}, {}});

COMPLEX_GRADIENT(where) {
  const Term condition = ctx.x(0), dy = ctx.dy();
  if (ctx.wants(1)) ctx.set(1, where(condition, dy, 0));
  if (ctx.wants(2)) ctx.set(2, where(condition, 0, dy));
}

// y = min(max(x, low), high): x has the gradient on the bounds too.
GRADIENT(clamp) {
  const Term x = ctx.x(0), dy = ctx.dy();
  const auto bound = [&](size_t i, const char* name) {
    return ctx.has(i) ? ctx.x(i) : ctx.scalar(ctx.attrs().f(name), x.dtype());
  };
  const Term low = bound(1, "min"), high = bound(2, "max");
  if (ctx.wants(0)) ctx.set(0, where(both(x >= low, x <= high), dy, 0));
  if (ctx.wants(1)) ctx.set(1, where(both(x < low, low <= high), dy, 0));
  if (ctx.wants(2)) ctx.set(2, where(either(x > high, low > high), dy, 0));
}

ZERO_GRADIENT(logical_not, "gives bool");
ZERO_GRADIENT(logical_and, "gives bool");
ZERO_GRADIENT(logical_or, "gives bool");
ZERO_GRADIENT(logical_xor, "gives bool");
ZERO_GRADIENT(logical_nand, "gives bool");
ZERO_GRADIENT(logical_nor, "gives bool");
ZERO_GRADIENT(logical_xnor, "gives bool");

KNOWN_ELEMENTS(where) {
  if (x[0].known()) return x[0].is(0) ? x[2] : x[1];
  if (x[1] == x[2]) return x[1];
  return {};
}

KNOWN_ELEMENTS(logical_not) { return x[0].known() ? Element(Dim(x[0].is(0))) : Element(); }

#define KNOWN_LOGIC(name, test)                            \
  KNOWN_ELEMENTS(name) {                                   \
    const bool a = !x[0].is(0), b = !x[1].is(0);           \
    return both_known(x) ? Element(Dim(test)) : Element(); \
  }
KNOWN_LOGIC(logical_and, a&& b)
KNOWN_LOGIC(logical_or, a || b)
KNOWN_LOGIC(logical_xor, a != b)
#undef KNOWN_LOGIC

}  // namespace anymps
