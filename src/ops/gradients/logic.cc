// SPDX-License-Identifier: Apache-2.0
// Gradients of choices (where, clamp) and of conversions between float types; comparisons, logic
// and tests of a number's kind have none.
#include "ops/gradient.h"

namespace anymps {

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

COMPLEX_GRADIENT(cast) { ctx.set(0, ctx.dy().op("cast", {{"dtype", ctx.x().dtype()}})); }

ZERO_GRADIENT(equal, "gives bool");
ZERO_GRADIENT(not_equal, "gives bool");
ZERO_GRADIENT(less, "gives bool");
ZERO_GRADIENT(less_equal, "gives bool");
ZERO_GRADIENT(greater, "gives bool");
ZERO_GRADIENT(greater_equal, "gives bool");
ZERO_GRADIENT(is_nan, "gives bool");
ZERO_GRADIENT(is_inf, "gives bool");
ZERO_GRADIENT(is_finite, "gives bool");
ZERO_GRADIENT(logical_not, "gives bool");
ZERO_GRADIENT(logical_and, "gives bool");
ZERO_GRADIENT(logical_or, "gives bool");
ZERO_GRADIENT(logical_xor, "gives bool");
ZERO_GRADIENT(logical_nand, "gives bool");
ZERO_GRADIENT(logical_nor, "gives bool");
ZERO_GRADIENT(logical_xnor, "gives bool");

}  // namespace anymps
