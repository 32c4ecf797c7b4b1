// SPDX-License-Identifier: Apache-2.0
// Detection heads as PaddlePaddle has them: yolo_box, and the two ways in which boxes of several
// classes are thinned out.
#include "ops/signal/detector.h"

#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

Detector detector_of(const Attrs& attrs, const Shape& boxes, const Shape& scores,
                     const float* box_data, const float* score_data) {
  Detector detector{box_data, score_data, boxes[0], scores[1], boxes[1]};
  detector.background = attrs.i("background_label");
  detector.most_before = attrs.i("nms_top_k");
  detector.most = attrs.i("keep_top_k");
  detector.score_threshold = static_cast<float>(attrs.f("score_threshold"));
  detector.normalized = attrs.b("normalized");
  if (attrs.op()->name == "matrix_nms") {
    detector.post_threshold = static_cast<float>(attrs.f("post_threshold"));
    detector.gaussian = attrs.b("use_gaussian");
    detector.sigma = static_cast<float>(attrs.f("gaussian_sigma"));
  } else {
    detector.iou_threshold = static_cast<float>(attrs.f("nms_threshold"));
    detector.eta = static_cast<float>(attrs.f("nms_eta"));
  }
  return detector;
}

std::vector<Detection> detect(const Attrs& attrs, const Detector& detector, int64_t image) {
  return attrs.op()->name == "matrix_nms" ? detector.decay(image) : detector.suppress(image);
}

YoloRule yolo_rule(const Attrs& attrs) {
  return {.scale = static_cast<float>(attrs.f("scale_x_y")),
          .threshold = static_cast<float>(attrs.f("conf_thresh")),
          .iou_factor = static_cast<float>(attrs.f("iou_aware_factor")),
          .downsample = attrs.i("downsample_ratio"),
          .clip = attrs.b("clip_bbox")};
}

namespace {

void infer_detections(InferContext& ctx) {
  expect_rank(ctx, 0, 3, 3);
  expect_rank(ctx, 1, 3, 3);
  const Dims &boxes = ctx.shape(0), &scores = ctx.shape(1);
  ctx.check(
      may_equal(boxes[2], 4) && may_equal(boxes[0], scores[0]) && may_equal(boxes[1], scores[2]),
      "boxes [images, n, 4] need scores [images, classes, n], they are {} and {}", to_string(boxes),
      to_string(scores));
  const Dim n = ctx.fresh("n");
  ctx.set(0, {n, 6});
  ctx.set(1, {n, 1});
  ctx.set(2, {boxes[0]});
}

std::vector<Shape> measure_detections(const MeasureContext& ctx) {
  const MeasureInput &boxes = ctx.inputs[0], &scores = ctx.inputs[1];
  const Detector detector = detector_of(ctx.attrs, boxes.desc.shape, scores.desc.shape,
                                        boxes.as<float>(), scores.as<float>());
  int64_t found = 0;
  for (int64_t i = 0; i < detector.images; ++i)
    found += static_cast<int64_t>(detect(ctx.attrs, detector, i).size());
  return {{found, 6}, {found, 1}, {detector.images}};
}

OpWriter& detections(OpWriter& op) {
  return op.input("boxes", bit(DType::kF32), "T", "[images, n, 4]: x1, y1, x2, y2")
      .input("scores", bit(DType::kF32), "T", "[images, classes, n]")
      .output("detections", "T", "[found, 6]: label, score, x1, y1, x2, y2")
      .output("indices", "i64", "[found, 1]: which box, counted over all images")
      .output("counts", "i32", "[images]: how many are of each")
      .attr("score_threshold", 0.0, "scores up to it do not count")
      .attr("nms_top_k", -1, "at most so many boxes of a class are looked at, the best; -1: all")
      .attr("keep_top_k", -1, "at most so many of an image are kept, the best; -1: all")
      .attr("background_label", 0, "a class that is passed over; -1: none")
      .attr("normalized", true, "coordinates are numbers; otherwise pixels, with both ends inside")
      .infer(infer_detections)
      .measure(measure_detections)
      .domain("boxes", 0, 4)
      .domain("scores", 0, 1)
      .sample({"all", {{2, 9, 4}, {2, 3, 9}}, {}})
      .sample({"few",
               {{2, 9, 4}, {2, 3, 9}},
               {{"score_threshold", 0.4},
                {"nms_top_k", 4},
                {"keep_top_k", 3},
                {"background_label", -1},
                {"normalized", false}}})
      .sample({"none", {{1, 4, 4}, {1, 2, 4}}, {{"score_threshold", 2.0}}})
      .sample({"no boxes", {{2, 0, 4}, {2, 2, 0}}, {}});
}

void infer_yolo_box(InferContext& ctx) {
  expect_rank(ctx, 0, 4, 4);
  const Dims& x = ctx.shape(0);
  expect_shape(ctx, 1, {x[0], 2});
  const std::vector<int64_t>& anchors = ctx.attrs.ints("anchors");
  ctx.check(!anchors.empty() && anchors.size() % 2 == 0,
            "anchors has {} entries: it must be pairs of a width and a height", anchors.size());
  const auto count = static_cast<int64_t>(anchors.size() / 2);
  const int64_t classes = ctx.attrs.i("class_num");
  ctx.check(classes >= 1, "class_num is {}", classes);
  ctx.check(ctx.attrs.i("downsample_ratio") >= 1, "downsample_ratio is {}",
            ctx.attrs.i("downsample_ratio"));
  const int64_t channels = count * (5 + classes + (ctx.attrs.b("iou_aware") ? 1 : 0));
  ctx.check(may_equal(x[1], channels), "x has shape {}: it must have {} channels", to_string(x),
            channels);
  const Dim boxes = x[2] * x[3] * count;
  ctx.set(0, {x[0], boxes, 4});
  ctx.set(1, {x[0], boxes, classes});
}

}  // namespace

OP(multiclass_nms)
    .doc(
        "The boxes that are kept when, class by class, those are dropped that overlap a better "
        "one; of each image those of the first class come first, the best of it first.")
    .formula("keep box b while iou(b, kept) <= nms_threshold for all that are kept, best first")
    .with(detections)
    .attr("nms_threshold", 0.3, "an overlap up to it is no matter")
    .attr("nms_eta", 1.0, "below 1: a threshold above 0.5 is multiplied by it for each box kept");

OP(matrix_nms)
    .doc(
        "Boxes whose scores fall by as much as they overlap better ones of their class, less where "
        "these are overlapped themselves; those stay that are above post_threshold then, the best "
        "of each image first.")
    .formula(
        "score[i] *= min over better j of (1 - iou(i, j)) / (1 - max iou of j with its betters)")
    .with(detections)
    .attr("post_threshold", 0.0, "scores up to it are dropped in the end")
    .attr("use_gaussian", false, "exp((max iou^2 - iou^2) * sigma) instead of the quotient")
    .attr("gaussian_sigma", 2.0)
    .tolerance({.f32 = 1e-5});

OP(yolo_box)
    .doc(
        "The boxes, in pixels of the image, and the scores that a YOLO head gives: for each anchor "
        "and each cell. Both are 0 where the confidence is below conf_thresh. With iou_aware the "
        "first channels, one for each anchor, are an estimate of the overlap.")
    .formula(
        "centre = (cell + scale * sigmoid(xy) + bias) * image / cells, size = anchor * exp(wh) * "
        "image / (downsample_ratio * cells)")
    .input("x", bit(DType::kF32), "T", "[N, anchors * (5 + class_num), H, W]")
    .input("image_size", kIndex, "I", "[N, 2]: height, width")
    .output("boxes", "T", "[N, anchors * H * W, 4]: x1, y1, x2, y2")
    .output("scores", "T", "[N, anchors * H * W, class_num]")
    .required("anchors", AttrKind::kInts, "width, height, width, …")
    .required("class_num", AttrKind::kInt, "how many classes")
    .attr("conf_thresh", 0.01, "cells below it give zeros")
    .attr("downsample_ratio", 32, "pixels of the network's input for each cell")
    .attr("clip_bbox", true, "boxes end at the image's")
    .attr("scale_x_y", 1.0, "of the centre's place within its cell, around the middle")
    .attr("iou_aware", false)
    .attr("iou_aware_factor", 0.5, "how much the estimated overlap counts in the confidence")
    .infer(infer_yolo_box)
    .tolerance({.f32 = 2e-5})
    .domain("image_size", 200, 400)
    .sample({"plain",
             {{2, 14, 3, 4}, {2, 2}},
             {{"anchors", std::vector<int64_t>{10, 13, 16, 30}}, {"class_num", 2}},
             {{1, {300, 400, 250, 200}}}})
    .sample({"threshold",
             {{1, 14, 3, 4}, {1, 2}},
             {{"anchors", std::vector<int64_t>{10, 13, 16, 30}},
              {"class_num", 2},
              {"conf_thresh", 0.5},
              {"clip_bbox", false},
              {"scale_x_y", 1.2}},
             {{1, {300, 400}}}})
    .sample({"iou_aware",
             {{1, 16, 2, 2}, {1, 2}},
             {{"anchors", std::vector<int64_t>{10, 13, 16, 30}},
              {"class_num", 2},
              {"iou_aware", true},
              {"downsample_ratio", 16}},
             {{1, {64, 64}}}})
    .sample({"empty",
             {{0, 7, 2, 2}, {0, 2}},
             {{"anchors", std::vector<int64_t>{10, 13}}, {"class_num", 2}},
             {{1, {}}}});

ZERO_GRADIENT(multiclass_nms, "it is made of steps");
ZERO_GRADIENT(matrix_nms, "what is kept is made of steps, and nothing is trained through it");
NO_GRADIENT(yolo_box, "it decodes what a trained network gives; nothing is trained through it");

}  // namespace anymps
