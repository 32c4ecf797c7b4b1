// SPDX-License-Identifier: Apache-2.0
// Reference kernels of the ops that are one scalar function and nothing more.
#include "drivers/reference/elementwise/elementwise.h"
#include "ops/elementwise/parameters.h"

namespace anymps {

namespace {

template <int attributes, typename Fn>
void map_activation(const ReferenceArgs& args, Fn fn) {
  const std::vector<double> p = number_attrs(args.op, args.attrs);
  map_unary<kFloat>(args, [=](double x) {
    if constexpr (attributes == 0)
      return fn(x);
    else if constexpr (attributes == 1)
      return fn(x, p[0]);
    else
      return fn(x, p[0], p[1]);
  });
}

template <int attributes, typename Fn>
void map_gradient(const ReferenceArgs& args, Fn fn) {
  const std::vector<double> p = number_attrs(args.op, args.attrs);
  map_binary<kFloat>(args, [=](double dy, double x) {
    if constexpr (attributes == 0)
      return fn(dy, x);
    else if constexpr (attributes == 1)
      return fn(dy, x, p[0]);
    else
      return fn(dy, x, p[0], p[1]);
  });
}

template <DTypeSet allowed, typename Fn>
void map_ternary(const ReferenceArgs& args, Fn fn) {
  dispatch<allowed>(args.out[0].dtype, [&]<typename T>() { map_elements<T, T, T, T>(args, fn); });
}

}  // namespace

#define UNARY(name, dtypes, ns) \
  REFERENCE(name) { map_unary<dtypes>(args, scalar::name); }
#define BINARY(name, dtypes, ns) \
  REFERENCE(name) { map_binary<dtypes>(args, scalar::name); }
#define TERNARY(name, dtypes, ns) \
  REFERENCE(name) { map_ternary<dtypes>(args, scalar::name); }
#define TEST(name, dtypes) \
  REFERENCE(name) { test_unary<dtypes>(args, scalar::name); }
#define COMPARE(name, dtypes) \
  REFERENCE(name) { test_binary<dtypes>(args, scalar::name); }
ANYMPS_SCALAR_OPS(UNARY, BINARY, TERNARY, TEST, COMPARE)
#undef UNARY
#undef BINARY
#undef TERNARY
#undef TEST
#undef COMPARE

#define ACTIVATION(name, attributes) \
  REFERENCE(name) { map_activation<attributes>(args, scalar::name); }
ANYMPS_ACTIVATIONS(ACTIVATION)
#undef ACTIVATION

#define ACTIVATION_GRADIENT(name, attributes) \
  REFERENCE(name) { map_gradient<attributes>(args, scalar::name); }
ANYMPS_ACTIVATION_GRADIENTS(ACTIVATION_GRADIENT)
#undef ACTIVATION_GRADIENT

}  // namespace anymps
