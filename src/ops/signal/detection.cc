// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression: the boxes that are left when those that overlap a better one are gone.
#include "ops/expect.h"
#include "ops/gradient.h"
#include "semantics/box_selection.h"

namespace anymps {

namespace {

// `boxes_axis`: of the scores; the other one after the batch is that of the classes.
void check_boxes(InferContext& ctx, size_t boxes_axis) {
  expect_rank(ctx, 0, 3, 3);
  expect_rank(ctx, 1, 3, 3);
  const Dims &boxes = ctx.shape(0), &scores = ctx.shape(1);
  ctx.check(may_equal(boxes[2], 4), "boxes has shape {}, must be [batch, boxes, 4]",
            to_string(boxes));
  ctx.check(may_equal(boxes[0], scores[0]) && may_equal(boxes[1], scores[boxes_axis]),
            "boxes {} need scores {}, not {}", to_string(boxes),
            boxes_axis == 1 ? "[batch, boxes, classes]" : "[batch, classes, boxes]",
            to_string(scores));
}

void infer_non_max_suppression(InferContext& ctx) {
  check_boxes(ctx, 2);
  ctx.set(0, {ctx.fresh("boxes"), 3});
}

std::vector<Shape> measure_non_max_suppression(const MeasureContext& ctx) {
  const Shape &boxes = ctx.inputs[0].desc.shape, &scores = ctx.inputs[1].desc.shape;
  BoxSelection selection{ctx.inputs[0].as<float>(), ctx.inputs[1].as<float>(), boxes[0], scores[1],
                         boxes[1]};
  selection.centres = ctx.attrs.b("center_point_box");
  const auto given = [&](size_t i) { return ctx.has(i) && ctx.inputs[i].desc.count() > 0; };
  if (given(2)) selection.most = *ctx.inputs[2].as<int64_t>();
  if (given(3)) selection.iou_threshold = *ctx.inputs[3].as<float>();
  selection.has_score_threshold = given(4);
  if (given(4)) selection.score_threshold = *ctx.inputs[4].as<float>();
  return {{std::ssize(selection.run()), 3}};
}

void infer_suppress_boxes(InferContext& ctx) {
  check_boxes(ctx, 1);
  const Dims &boxes = ctx.shape(0), &scores = ctx.shape(1);
  if (ctx.has(2)) {
    ctx.check(may_equal(scores[2], 1), "with class_indices there is one score a box, not {}",
              scores[2].str());
    expect_shape(ctx, 2, {boxes[0], boxes[1]});
  }
  const double iou = ctx.attrs.f("iou_threshold");
  ctx.check(iou >= 0 && iou <= 1, "iou_threshold is {}, must be 0 to 1", iou);
  ctx.set(0, scores);
}

}  // namespace

OP(non_max_suppression)
    .doc(
        "The boxes that are kept, class by class, when those with a lower score that overlap a "
        "kept one are dropped, as [batch, class, box]. Boxes are [y1, x1, y2, x2], corners in any "
        "order, or [x, y, width, height] around their centres. How many there are depends on the "
        "boxes.")
    .formula("keep box b while iou(b, kept) <= iou_threshold for all that are kept, best first")
    .input("boxes", bit(DType::kF32), "T", "[batch, boxes, 4]")
    .input("scores", bit(DType::kF32), "T", "[batch, classes, boxes]")
    .optional("max_per_class", bit(DType::kI64), "I", "a scalar; absent: 0, so none are kept")
    .optional("iou_threshold", bit(DType::kF32), "T", "a scalar; absent: 0")
    .optional("score_threshold", bit(DType::kF32), "T", "a scalar; absent: none")
    .output("indices", "i64", "[kept, 3]")
    .attr("center_point_box", false)
    .infer(infer_non_max_suppression)
    .measure(measure_non_max_suppression)
    .domain("boxes", 0, 4)
    .domain("scores", 0, 1)
    .domain("iou_threshold", 0, 1)
    .domain("score_threshold", 0, 1)
    .sample({"all", {{2, 9, 4}, {2, 3, 9}, {}, {}, {}}, {}, {{2, {4}}}})
    .sample({"centres", {{1, 9, 4}, {1, 2, 9}, {1}, {1}}, {{"center_point_box", true}}, {{2, {9}}}})
    .sample({"none asked for", {{1, 9, 4}, {1, 2, 9}}, {}})
    .sample({"no boxes", {{1, 0, 4}, {1, 2, 0}, {}}, {}, {{2, {3}}}});

OP(suppress_boxes)
    .doc(
        "Scores with those of suppressed boxes set to 0: boxes below the score threshold, and "
        "boxes that overlap a better one, of their class or, unless per_class, of any. A score "
        "above 0 is of a box that is kept. The class of a score is its place in the last axis, or "
        "given by class_indices.")
    .formula("y = kept ? score : 0")
    .mps(
        "nonMaximumSuppressionWithBoxesTensor:scoresTensor:IOUThreshold:scoreThreshold:"
        "perClassSuppression:coordinateMode:name:")
    .mps(
        "nonMaximumSuppressionWithBoxesTensor:scoresTensor:classIndicesTensor:IOUThreshold:"
        "scoreThreshold:perClassSuppression:coordinateMode:name:")
    .input("boxes", bit(DType::kF32), "T", "[batch, boxes, 4]")
    .input("scores", bit(DType::kF32), "T", "[batch, boxes, classes]")
    .optional("class_indices", kIndex, "I", "[batch, boxes]")
    .output("y")
    .attr("iou_threshold", 0.5)
    .attr("score_threshold", 0.0)
    .attr("per_class", true)
    .attr("coordinates", "corners_height_first",
          {"corners_height_first", "corners_width_first", "centers_height_first",
           "centers_width_first"})
    .infer(infer_suppress_boxes)
    .domain("boxes", 0, 4)
    .domain("scores", 0, 1)
    .domain("class_indices", 0, 2)
    .no_layout_tests()
    .sample({"corners", {{2, 9, 4}, {2, 9, 3}}, {}})
    .sample({"any class", {{1, 9, 4}, {1, 9, 2}}, {{"per_class", false}, {"iou_threshold", 0.2}}})
    .sample({"centres",
             {{1, 9, 4}, {1, 9, 1}, {1, 9}},
             {{"coordinates", "centers_width_first"}, {"score_threshold", 0.3}}})
    .sample({"none", {{1, 0, 4}, {1, 0, 2}}, {}});

GRADIENT(suppress_boxes) {  // which boxes are kept is made of steps
  ctx.set(1, where(ctx.y() == 0.0, 0, ctx.dy()));
}

ZERO_GRADIENT(non_max_suppression, "it is made of steps");

}  // namespace anymps
