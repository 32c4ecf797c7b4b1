// SPDX-License-Identifier: Apache-2.0
// Running sums, products and extrema along an axis.
#include "ops/axis_input.h"

namespace anymps {

#define CUMULATIVE(name, dtypes, text, math)                                                 \
  OP(name)                                                                                   \
      .doc(text)                                                                             \
      .formula(math)                                                                         \
      .input("x", dtypes)                                                                    \
      .optional("axis", kIndex, "I", "a scalar; wins over the attribute")                    \
      .output("y")                                                                           \
      .attr("axis", 0, "along which to run")                                                 \
      .attr("exclusive", false, "y[i] leaves out x[i]; the first is that of nothing")        \
      .attr("reverse", false, "run from the end")                                            \
      .infer([](InferContext& ctx) {                                                         \
        known_axis(ctx, 1, 0);                                                               \
        infer_same(ctx);                                                                     \
      })                                                                                     \
      .sample({"vector", {{9}}, {}, {}})                                                     \
      .sample({"last", {{3, 17}}, {{"axis", -1}}, {}})                                       \
      .sample({"exclusive", {{3, 5, 4}}, {{"axis", 1}, {"exclusive", true}}, {}})            \
      .sample({"reverse", {{6, 4}}, {{"reverse", true}}, {}})                                \
      .sample({"both", {{6, 4}}, {{"axis", 1}, {"exclusive", true}, {"reverse", true}}, {}}) \
      .sample({"axis_input", {{3, 4, 2}, {}}, {}, {{1, {-2}}}})                              \
      .sample({"empty", {{3, 0}}, {{"axis", 1}}, {}})

CUMULATIVE(cumsum, kNumber, "Running sum along an axis.", "y[i] = sum(x[0 .. i])")
    .mps("cumulativeSumWithTensor:axis:exclusive:reverse:name:")
    .mps("cumulativeSumWithTensor:axisTensor:exclusive:reverse:name:")
    .mps("cumulativeSumWithTensor:axis:name:")
    .mps("cumulativeSumWithTensor:axisTensor:name:");
CUMULATIVE(cumprod, kNumber, "Running product along an axis.", "y[i] = product(x[0 .. i])")
    .mps("cumulativeProductWithTensor:axis:exclusive:reverse:name:")
    .mps("cumulativeProductWithTensor:axisTensor:exclusive:reverse:name:")
    .mps("cumulativeProductWithTensor:axis:name:")
    .mps("cumulativeProductWithTensor:axisTensor:name:")
    .domain(0.5, 1.5);
CUMULATIVE(
    cummin, kReal,
    "Lowest element so far along an axis; NaN from the first NaN on. Of nothing: the highest "
    "value of the dtype.",
    "y[i] = min(x[0 .. i])")
    .mps("cumulativeMinimumWithTensor:axis:exclusive:reverse:name:")
    .mps("cumulativeMinimumWithTensor:axisTensor:exclusive:reverse:name:")
    .mps("cumulativeMinimumWithTensor:axis:name:")
    .mps("cumulativeMinimumWithTensor:axisTensor:name:");
CUMULATIVE(
    cummax, kReal,
    "Highest element so far along an axis; NaN from the first NaN on. Of nothing: the lowest "
    "value of the dtype.",
    "y[i] = max(x[0 .. i])")
    .mps("cumulativeMaximumWithTensor:axis:exclusive:reverse:name:")
    .mps("cumulativeMaximumWithTensor:axisTensor:exclusive:reverse:name:")
    .mps("cumulativeMaximumWithTensor:axis:name:")
    .mps("cumulativeMaximumWithTensor:axisTensor:name:");

}  // namespace anymps
