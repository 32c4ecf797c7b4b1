// SPDX-License-Identifier: Apache-2.0
// Detection heads: dense copies, and the formulas of semantics/detections.h.
#include "ops/signal/detector.h"

#include "drivers/reference/dense.h"

namespace anymps {

namespace {

std::vector<float> dense_floats(const View& view) {
  const std::vector<double> values = read_dense<double>(view);
  return {values.begin(), values.end()};
}

void write_detections(const ReferenceArgs& args) {
  const std::vector<float> boxes = dense_floats(args.in[0]), scores = dense_floats(args.in[1]);
  const Detector detector =
      detector_of(args.attrs, args.in[0].shape(), args.in[1].shape(), boxes.data(), scores.data());
  const View &found = args.out[0], &indices = args.out[1], &counts = args.out[2];
  int64_t row = 0;
  for (int64_t image = 0; image < detector.images; ++image) {
    const std::vector<Detection> own = detect(args.attrs, detector, image);
    counts.at<int32_t>({image}) = static_cast<int32_t>(own.size());
    for (const Detection& detection : own) {
      require(row < found.extent(0), "[{}] the output has room for {} boxes", args.op.name,
              found.extent(0));
      const int64_t box = image * detector.count + detection.box;
      found.at<float>({row, 0}) = static_cast<float>(detection.label);
      found.at<float>({row, 1}) = detection.score;
      for (int64_t i = 0; i < 4; ++i) found.at<float>({row, 2 + i}) = boxes[box * 4 + i];
      indices.at<int64_t>({row, 0}) = box;
      ++row;
    }
  }
  require(row == found.extent(0), "[{}] {} boxes are kept, the output has room for {}",
          args.op.name, row, found.extent(0));
}

}  // namespace

REFERENCE(multiclass_nms) { write_detections(args); }
REFERENCE(matrix_nms) { write_detections(args); }

REFERENCE(yolo_box) {
  const View &x = args.in[0], &sizes = args.in[1], &boxes = args.out[0], &scores = args.out[1];
  const YoloRule rule = yolo_rule(args.attrs);
  const std::vector<int64_t>& anchors = args.attrs.ints("anchors");
  const auto count = static_cast<int64_t>(anchors.size() / 2);
  const int64_t classes = args.attrs.i("class_num"), height = x.extent(2), width = x.extent(3);
  const bool aware = args.attrs.b("iou_aware");
  for_each_index(Shape{x.extent(0), count, height, width}, [&](const Shape& at) {
    const int64_t n = at[0], a = at[1], row = at[2], column = at[3];
    const int64_t to = (a * height + row) * width + column;
    const auto entry = [&](int64_t i) {
      return x.at<float>({n, (aware ? count : 0) + a * (5 + classes) + i, row, column});
    };
    const float iou = aware ? x.at<float>({n, a, row, column}) : 0;
    const float confidence = rule.confidence(entry(4), aware ? &iou : nullptr);
    float box[4] = {0, 0, 0, 0};
    const bool seen = !(confidence < rule.threshold);
    if (seen) {
      const float raw[4] = {entry(0), entry(1), entry(2), entry(3)};
      rule.box({row, column, height, width, static_cast<float>(anchors[2 * a]),
                static_cast<float>(anchors[2 * a + 1]),
                static_cast<float>(load_int(sizes, sizes.offset(std::array{n, int64_t{0}}))),
                static_cast<float>(load_int(sizes, sizes.offset(std::array{n, int64_t{1}})))},
               raw, box);
    }
    for (int64_t i = 0; i < 4; ++i) boxes.at<float>({n, to, i}) = box[i];
    for (int64_t c = 0; c < classes; ++c)
      scores.at<float>({n, to, c}) = seen ? confidence * YoloRule::sigmoid(entry(5 + c)) : 0;
  });
}

}  // namespace anymps
