// SPDX-License-Identifier: Apache-2.0
// Reference kernels of the special functions, and of arithmetic of pairs and triples.
#include "semantics/special/special_functions.h"

#include "drivers/reference/elementwise/elementwise.h"
#include "ops/elementwise/parameters.h"
#include "semantics/pair_functions.h"

namespace anymps {

#define UNARY(name, dtypes, ns) \
  REFERENCE(name) { map_unary<dtypes>(args, scalar::name); }
#define BINARY(name, dtypes, ns) \
  REFERENCE(name) { map_binary<dtypes>(args, scalar::name); }
#define PARAMETRIC(name, attributes)                                       \
  REFERENCE(name) {                                                        \
    const double p = number_attrs(args.op, args.attrs)[0];                 \
    map_unary<kFloat>(args, [p](double x) { return scalar::name(x, p); }); \
  }
#define TERNARY(name, dtypes, ns)                                                          \
  REFERENCE(name) {                                                                        \
    dispatch<dtypes>(args.out[0].dtype,                                                    \
                     [&]<typename T>() { map_elements<T, T, T, T>(args, scalar::name); }); \
  }
#define WEIGHTED(name, dtypes, ns)                                                       \
  REFERENCE(name) {                                                                      \
    const double p = number_attrs(args.op, args.attrs)[0];                               \
    dispatch<dtypes>(args.out[0].dtype, [&]<typename T>() {                              \
      map_elements<T, T, T, T>(                                                          \
          args, [p](double x, double a, double b) { return scalar::name(x, a, b, p); }); \
    });                                                                                  \
  }
ANYMPS_SPECIAL_OPS(UNARY, BINARY, TERNARY, PARAMETRIC)
ANYMPS_PAIR_OPS(BINARY, TERNARY, WEIGHTED)
#undef UNARY
#undef BINARY
#undef PARAMETRIC
#undef TERNARY
#undef WEIGHTED

}  // namespace anymps
