// SPDX-License-Identifier: Apache-2.0
// Reference kernels of comparisons.
#include "drivers/reference/elementwise.h"

namespace anymps {

#define COMPARISON(name, dtypes) \
  REFERENCE(name) { test_binary<dtypes>(args, scalar::name); }

COMPARISON(equal, kAny)
COMPARISON(not_equal, kAny)
COMPARISON(less, kReal)
COMPARISON(less_equal, kReal)
COMPARISON(greater, kReal)
COMPARISON(greater_equal, kReal)

REFERENCE(is_nan) { test_unary<kFloat>(args, scalar::is_nan); }
REFERENCE(is_finite) { test_unary<kFloat>(args, scalar::is_finite); }
REFERENCE(is_inf) {
  const bool positive = args.attrs.b("positive"), negative = args.attrs.b("negative");
  test_unary<kFloat>(args, [=](double x) { return scalar::is_inf(x, positive, negative); });
}

}  // namespace anymps
