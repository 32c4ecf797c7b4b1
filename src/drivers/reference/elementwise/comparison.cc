// SPDX-License-Identifier: Apache-2.0
// Reference kernels of comparisons that know strings, and of the test for infinity.
#include "drivers/reference/elementwise/elementwise.h"

namespace anymps {

namespace {

template <typename Fn>
void compare_texts(const ReferenceArgs& args, Fn fn) {
  const View &a = args.in[0], &b = args.in[1], &y = args.out[0];
  const BroadcastOffset from_a(a, y.shape()), from_b(b, y.shape());
  for_each_index(y.shape(), [&](const Shape& index) {
    y.at<bool>(index) =
        fn(text_of(a.as<Text>()[from_a(index)]), text_of(b.as<Text>()[from_b(index)]));
  });
}

}  // namespace

// Strings are equal when their characters are, wherever they lie.
#define EQUALITY(name, dtypes)                                                              \
  REFERENCE(name) {                                                                         \
    if (args.in[0].dtype != DType::kString) return test_binary<dtypes>(args, scalar::name); \
    compare_texts(args, [](const std::string& a, const std::string& b) {                    \
      return scalar::name(a == b, true);                                                    \
    });                                                                                     \
  }

EQUALITY(equal, kAny)
EQUALITY(not_equal, kAny)

REFERENCE(is_inf) {
  const bool positive = args.attrs.b("positive"), negative = args.attrs.b("negative");
  test_unary<kFloat>(args, [=](double x) { return scalar::is_inf(x, positive, negative); });
}

}  // namespace anymps
