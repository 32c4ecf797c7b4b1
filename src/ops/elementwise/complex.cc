// SPDX-License-Identifier: Apache-2.0
// From complex numbers to their parts and back.
#include "ops/elementwise/elementwise_record.h"
#include "ops/gradient.h"
#include "ops/shape_rules.h"

namespace anymps {

#define COMPLEX_TO_REAL(name, text, math) \
  ELEMENTWISE(name, text, math).input("x", kComplex).output("y", "real T")

COMPLEX_TO_REAL(real_part, "The real part.", "y = re(x)").mps("realPartOfTensor:name:");
COMPLEX_TO_REAL(imaginary_part, "The imaginary part.", "y = im(x)")
    .mps("imaginaryPartOfTensor:name:");
COMPLEX_TO_REAL(complex_abs, "The distance from 0.", "y = sqrt(re(x)^2 + im(x)^2)")
    .mps("absoluteWithTensor:name:");
COMPLEX_TO_REAL(absolute_square, "The square of the distance from 0; of real numbers: square.",
                "y = re(x)^2 + im(x)^2")
    .mps("absoluteSquareWithTensor:name:");

UNARY(conjugate, kComplex, "The imaginary part with the other sign.", "y = re(x) - i * im(x)")
    .mps("conjugateWithTensor:name:");

ELEMENTWISE(make_complex, "Complex numbers from real and imaginary parts, which broadcast.",
            "y = real + i * imaginary")
    .mps("complexTensorWithRealTensor:imaginaryTensor:name:")
    .input("real", kPrecise)
    .input("imaginary", kPrecise)
    .output("y", "complex T");

OP(planar)
    .doc(
        "All real parts and then all imaginary parts along the last axis, which becomes twice as "
        "long.")
    .formula("y[.., i] = re(x[.., i]), y[.., n + i] = im(x[.., i])")
    .mps("planarTensorWithComplexTensor:name:")
    .input("x", kComplex)
    .output("y", "real T")
    .infer([](InferContext& ctx) {
      ctx.check(ctx.rank(0) >= 1, "x must have rank 1 or more");
      Dims shape = ctx.shape(0);
      shape.back() = ordered_product({shape.back(), 2});
      ctx.set(0, std::move(shape));
    })
    .sample({"vector", {{5}}, {}})
    .sample({"matrix", {{3, 4}}, {}})
    .sample({"empty", {{0, 4}}, {}})
    .sample({"empty_axis", {{2, 0}}, {}});

namespace {

Term complex_of(GradientContext& ctx, const Term& real, const Term& imaginary) {
  return ctx.add("make_complex", {real, imaginary});
}
Term zero(GradientContext& ctx) { return ctx.scalar(0, ctx.dy().dtype()); }

}  // namespace

COMPLEX_GRADIENT(real_part) { ctx.set(0, complex_of(ctx, ctx.dy(), zero(ctx))); }
COMPLEX_GRADIENT(imaginary_part) { ctx.set(0, complex_of(ctx, zero(ctx), ctx.dy())); }
COMPLEX_GRADIENT(conjugate) { ctx.set(0, ctx.dy().op("conjugate")); }

COMPLEX_GRADIENT(absolute_square) {
  ctx.set(0, ctx.x() * complex_of(ctx, ctx.dy() * 2, zero(ctx)));
}

// 0 at 0.
COMPLEX_GRADIENT(complex_abs) {
  const Term scale = ctx.add("div_no_nan", {ctx.dy(), ctx.y()});
  ctx.set(0, ctx.x() * complex_of(ctx, scale, zero(ctx)));
}

COMPLEX_GRADIENT(make_complex) {
  ctx.set(0, ctx.dy().op("real_part"));
  ctx.set(1, ctx.dy().op("imaginary_part"));
}

COMPLEX_GRADIENT(planar) {
  const auto parts = ctx.add_all("split", {ctx.dy()}, {{"axis", -1}}, 2);
  ctx.set(0, complex_of(ctx, parts[0], parts[1]));
}

}  // namespace anymps
