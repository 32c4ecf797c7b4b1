// SPDX-License-Identifier: Apache-2.0
// Boxes as offsets from prior boxes, and the prior boxes of a feature map, as PaddlePaddle has
// them.
#include "ops/expect.h"
#include "ops/gradient.h"
#include "semantics/box_coding.h"

namespace anymps {

namespace {

void infer_box_coder(InferContext& ctx) {
  const bool encodes = ctx.attrs.s("code") == "encode";
  const int64_t axis = ctx.attrs.i("axis");
  ctx.check(axis == 0 || axis == 1, "axis is {}, must be 0 or 1", axis);
  const size_t given = ctx.attrs.floats("variance").size();
  ctx.check(given == 0 || given == 4, "variance has {} numbers, must have 4", given);
  expect_rank(ctx, 0, 2, 2);
  const Dim priors = ctx.shape(0)[0];
  expect_shape(ctx, 0, {priors, 4});
  expect_shape(ctx, 2, {priors, 4});
  expect_rank(ctx, 1, encodes ? 2 : 3, encodes ? 2 : 3);
  const Dim rows = ctx.shape(1)[0];
  if (encodes) {
    expect_shape(ctx, 1, {rows, 4});
    return ctx.set(0, {rows, priors, 4});
  }
  const Dim columns = ctx.shape(1)[1];
  expect_shape(ctx, 1, axis == 0 ? Dims{rows, priors, 4} : Dims{priors, columns, 4});
  ctx.set(0, ctx.shape(1));
}

void infer_prior_box(InferContext& ctx) {
  const Attrs& attrs = ctx.attrs;
  expect_rank(ctx, 0, 4, 4);
  expect_rank(ctx, 1, 4, 4);
  const size_t sizes = attrs.floats("min_sizes").size(), most = attrs.floats("max_sizes").size();
  ctx.check(sizes > 0, "min_sizes is empty");
  ctx.check(most == 0 || most == sizes, "there are {} max_sizes for {} min_sizes", most, sizes);
  ctx.check(attrs.floats("variances").size() == 4, "variances has {} numbers, must have 4",
            attrs.floats("variances").size());
  const size_t ratios =
      prior_ratios(attrs.floats("aspect_ratios"), attrs.b("flip")).size() * sizes + most;
  const Dims boxes = {ctx.shape(0)[2], ctx.shape(0)[3], static_cast<int64_t>(ratios), 4};
  for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set(i, boxes);
}

const std::vector<double> kNoFloats;
const Shape kNoVariance = {-1};

}  // namespace

OP(box_coder)
    .doc(
        "Boxes as offsets from prior boxes, divided by variances, or back. Each box is encoded "
        "from "
        "each prior; of decoded ones the priors go with axis 1 of the codes, or with axis 0.")
    .formula(
        "encode: ((x - px) / pw, (y - py) / ph, log|w / pw|, log|h / ph|) / variance; decode: the "
        "inverse")
    .input("priors", kFloat, "T", "[M, 4]: x1, y1, x2, y2")
    .input("boxes", kFloat, "T", "[N, 4]; codes: [N, M, 4], or [M, N, 4] for axis 1")
    .optional("variances", kFloat, "T", "[M, 4]; wins over the attribute")
    .output("y", "T", "[N, M, 4]; boxes: as the codes")
    .attr("code", "encode", {"encode", "decode"})
    .attr("variance", kNoFloats, "four numbers for all priors; none: 1")
    .attr("normalized", true, "boxes are parts of the image; false: pixels, the last one belongs")
    .attr("axis", 0, "0: the priors go along axis 1 of codes; 1: along axis 0")
    .infer(infer_box_coder)
    .domain("boxes", -1, 1)
    .tolerance({.f32 = 2e-5, .f16 = 2e-2, .bf16 = 2e-1})
    .sample({"encode", {{3, 4}, {2, 4}, {3, 4}}, {{"normalized", false}}})
    .sample({"encode, one variance",
             {{3, 4}, {2, 4}},
             {{"variance", std::vector<double>{0.1, 0.1, 0.2, 0.2}}}})
    .sample({"decode", {{3, 4}, {2, 3, 4}, {3, 4}}, {{"code", "decode"}}})
    .sample({"decode along axis 1",
             {{3, 4}, {3, 5, 4}},
             {{"code", "decode"}, {"axis", 1}, {"normalized", false}}})
    .sample({"no boxes", {{3, 4}, {0, 4}, kNoVariance}, {}});

OP(prior_box)
    .doc(
        "The prior boxes of each place of a feature map, as parts of the image, and their "
        "variances. "
        "Only shapes are read. For each of min_sizes there is a box of each aspect ratio and, if "
        "there are max_sizes, a square between the two.")
    .formula(
        "y[h, w, p] = (x -+ width(p) / 2, y -+ height(p) / 2) / image, x = (w + offset) * step")
    .input("x", kFloat, "T", "[N, C, H, W]")
    .input("image", kFloat, "T", "[N, C, height, width]")
    .output("boxes", "T", "[H, W, P, 4]: x1, y1, x2, y2")
    .output("box_variances", "T", "[H, W, P, 4]")
    .required("min_sizes", AttrKind::kFloats)
    .attr("max_sizes", kNoFloats, "none, or one for each of min_sizes")
    .attr("aspect_ratios", std::vector<double>{1.0}, "of width and height; 1 is always there")
    .attr("variances", std::vector<double>{0.1, 0.1, 0.2, 0.2})
    .attr("flip", false, "the inverse ratios too")
    .attr("clip", false, "to the image")
    .attr("step_width", 0.0, "from place to place, in pixels; 0: the image's over the map's")
    .attr("step_height", 0.0)
    .attr("offset", 0.5, "of a center in its place")
    .attr("max_second", false, "the square of max_sizes comes second, else last")
    .facts(kShapeOnly)
    .reference_only("small, and made once")
    .infer(infer_prior_box)
    .tolerance({.f32 = 1e-6})
    .sample({"squares", {{1, 2, 2, 3}, {1, 3, 8, 12}}, {{"min_sizes", std::vector<double>{2}}}})
    .sample({"all",
             {{1, 2, 3, 2}, {1, 3, 9, 8}},
             {{"min_sizes", std::vector<double>{2, 3}},
              {"max_sizes", std::vector<double>{4, 5}},
              {"aspect_ratios", std::vector<double>{1, 2, 3}},
              {"flip", true},
              {"clip", true},
              {"step_width", 5.0},
              {"max_second", true}}})
    .sample({"empty", {{1, 2, 0, 2}, {1, 3, 9, 8}}, {{"min_sizes", std::vector<double>{2}}}});

NO_GRADIENT(box_coder, "codes are targets and results of a detector; no framework has it");
ZERO_GRADIENT(prior_box, "reads shapes alone");

}  // namespace anymps
