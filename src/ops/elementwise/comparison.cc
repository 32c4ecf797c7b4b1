// SPDX-License-Identifier: Apache-2.0
// Elementwise comparisons and tests of a number's kind; the result is bool. A comparison with NaN
// is false, and only not_equal is true.
#include "ops/elementwise/elementwise_record.h"
#include "ops/gradient.h"

namespace anymps {

#define COMPARISON(name, dtypes, text, math) \
  ELEMENTWISE(name, text, math).input("a", dtypes).input("b", dtypes).output("y", "bool")
#define PREDICATE(name, text, math) \
  ELEMENTWISE(name, text, math).input("x", kFloat).output("y", "bool")

COMPARISON(equal, kAny | kText, "True where a and b are equal.", "y = a == b")
    .onnx("Equal")
    .mps("equalWithPrimaryTensor:secondaryTensor:name:")
    .facts(kCommutative);
COMPARISON(not_equal, kAny | kText, "True where a and b differ.", "y = a != b")
    .mps("notEqualWithPrimaryTensor:secondaryTensor:name:")
    .facts(kCommutative);
COMPARISON(less, kOrdered, "True where a is below b.", "y = a < b")
    .onnx("Less")
    .mps("lessThanWithPrimaryTensor:secondaryTensor:name:");
COMPARISON(less_equal, kOrdered, "True where a is not above b.", "y = a <= b")
    .onnx("LessOrEqual")
    .mps("lessThanOrEqualToWithPrimaryTensor:secondaryTensor:name:");
COMPARISON(greater, kOrdered, "True where a is above b.", "y = a > b")
    .onnx("Greater")
    .mps("greaterThanWithPrimaryTensor:secondaryTensor:name:");
COMPARISON(greater_equal, kOrdered, "True where a is not below b.", "y = a >= b")
    .onnx("GreaterOrEqual")
    .mps("greaterThanOrEqualToWithPrimaryTensor:secondaryTensor:name:");

PREDICATE(is_nan, "True where x is NaN.", "y = x != x")
    .onnx("IsNaN")
    .aten("isnan")
    .mps("isNaNWithTensor:name:");
PREDICATE(is_inf, "True where x is an infinity of a sign that is asked for.", "y = |x| == inf")
    .aten("isinf")
    .mps("isInfiniteWithTensor:name:")
    .attr("positive", true, "+inf counts")
    .attr("negative", true, "-inf counts");
PREDICATE(is_finite, "True where x is neither NaN nor an infinity.", "y = |x| < inf")
    .mps("isFiniteWithTensor:name:");

ZERO_GRADIENT(equal, "gives bool");
ZERO_GRADIENT(not_equal, "gives bool");
ZERO_GRADIENT(less, "gives bool");
ZERO_GRADIENT(less_equal, "gives bool");
ZERO_GRADIENT(greater, "gives bool");
ZERO_GRADIENT(greater_equal, "gives bool");
ZERO_GRADIENT(is_nan, "gives bool");
ZERO_GRADIENT(is_inf, "gives bool");
ZERO_GRADIENT(is_finite, "gives bool");

// -1, 0, 1: a is less than, equal to, greater than b.
static std::optional<int> order_of(const Dim& a, const Dim& b) {
  if (a == b) return 0;
  if (a.known() && b.known()) return a.value() < b.value() ? -1 : 1;
  if (b.known() && b.value() < 0 && never_negative(a)) return 1;
  if (a.known() && a.value() < 0 && never_negative(b)) return -1;
  return {};
}

#define KNOWN_ORDER(name, test)                             \
  KNOWN_ELEMENTS(name) {                                    \
    const std::optional<int> order = order_of(x[0], x[1]);  \
    return order ? Element(Dim(*order test 0)) : Element(); \
  }
KNOWN_ORDER(equal, ==)
KNOWN_ORDER(not_equal, !=)
KNOWN_ORDER(less, <)
KNOWN_ORDER(less_equal, <=)
KNOWN_ORDER(greater, >)
KNOWN_ORDER(greater_equal, >=)
#undef KNOWN_ORDER

}  // namespace anymps
