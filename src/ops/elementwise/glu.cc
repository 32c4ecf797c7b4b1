// SPDX-License-Identifier: Apache-2.0
// The gated linear unit: not elementwise, since it halves an axis.
#include "ops/gradient.h"

namespace anymps {

static void infer_glu(InferContext& ctx) {
  const size_t axis = ctx.axis("axis", 0);
  Dims shape = ctx.shape(0);
  ctx.check(!shape[axis].known() || shape[axis].value() % 2 == 0,
            "axis {} has the extent {}, which is odd", axis, shape[axis].str());
  shape[axis] = floor_div(shape[axis], 2);
  ctx.set(0, shape);
}

OP(glu)
    .doc("Gated linear unit: the first half of an axis times the sigmoid of the second.")
    .formula("y = a * sigmoid(b), where x is a and b, joined along the axis")
    .input("x", kFloat)
    .output("y")
    .attr("axis", -1, "the axis that is halved")
    .layout(LayoutRule::kAxis)
    .infer(infer_glu)
    .domain(-6, 6)
    .sample({"vector", {{8}}, {}})
    .sample({"last", {{3, 34}}, {}})
    .sample({"middle", {{2, 6, 5}}, {{"axis", 1}}})
    .sample({"first", {{4, 3}}, {{"axis", 0}}})
    .sample({"long", {{2, 5000}}, {}})
    .sample({"empty", {{0, 4}}, {}})
    .sample({"empty axis", {{3, 0}}, {}});

GRADIENT(glu) {
  const std::vector<Term> halves =
      ctx.add_all("split", {ctx.x()}, {{"axis", ctx.attrs().i("axis")}}, 2);
  ctx.through({halves[0] * halves[1].op("sigmoid")});
}

}  // namespace anymps
