// SPDX-License-Identifier: Apache-2.0
// Reference kernels of elementwise arithmetic.
#include "drivers/reference/elementwise/elementwise.h"
#include "drivers/reference/move.h"

namespace anymps {

#define UNARY(name, dtypes) \
  REFERENCE(name) { map_unary<dtypes>(args, scalar::name); }
#define BINARY(name, dtypes) \
  REFERENCE(name) { map_binary<dtypes>(args, scalar::name); }

REFERENCE(identity) { move_in_order(args.in[0], args.out[0]); }
UNARY(exp, kFloat | kComplex)
UNARY(exp2, kFloat)
UNARY(exp10, kFloat)
UNARY(expm1, kFloat)
UNARY(log, kFloat | kComplex)
UNARY(log2, kFloat)
UNARY(log10, kFloat)
UNARY(log1p, kFloat)
UNARY(square, kNumber)
UNARY(sqrt, kFloat | kComplex)
UNARY(rsqrt, kFloat | kComplex)
UNARY(reciprocal, kFloat | kComplex)
UNARY(abs, kReal)
UNARY(neg, kNumber)
UNARY(sign, kReal)
UNARY(ceil, kReal)
UNARY(floor, kReal)
UNARY(round, kReal)
UNARY(rint, kReal)
UNARY(trunc, kReal)
UNARY(sin, kFloat | kComplex)
UNARY(cos, kFloat | kComplex)
UNARY(tan, kFloat | kComplex)
UNARY(sinh, kFloat | kComplex)
UNARY(cosh, kFloat | kComplex)
UNARY(tanh, kFloat | kComplex)
UNARY(asin, kFloat)
UNARY(acos, kFloat)
UNARY(atan, kFloat)
UNARY(asinh, kFloat)
UNARY(acosh, kFloat)
UNARY(atanh, kFloat)
UNARY(erf, kFloat)

BINARY(add, kNumber)
BINARY(sub, kNumber)
BINARY(mul, kNumber)
BINARY(div_no_nan, kNumber)
BINARY(mod, kReal)
BINARY(floor_mod, kReal)
BINARY(pow, kNumber)
BINARY(atan2, kFloat)

REFERENCE(signbit) { test_unary<kReal>(args, scalar::signbit); }

REFERENCE(div) {
  const std::string& rounding = args.attrs.s("rounding");
  if (rounding == "none") return map_binary<kNumber>(args, scalar::div);
  const bool floor = rounding == "floor";
  dispatch<kReal>(args.in[0].dtype, [&]<typename T>() {
    map_elements<T, T, T>(args, [floor](Wide<T> a, Wide<T> b) -> Wide<T> {
      const auto x = static_cast<Compute<T>>(a), y = static_cast<Compute<T>>(b);
      return floor ? scalar::div_floor(x, y) : scalar::div_trunc(x, y);
    });
  });
}

REFERENCE(min) {
  const bool propagate_nan = args.attrs.b("propagate_nan");
  map_binary<kReal>(args, [=](auto a, auto b) { return scalar::min(a, b, propagate_nan); });
}

REFERENCE(max) {
  const bool propagate_nan = args.attrs.b("propagate_nan");
  map_binary<kReal>(args, [=](auto a, auto b) { return scalar::max(a, b, propagate_nan); });
}

}  // namespace anymps
