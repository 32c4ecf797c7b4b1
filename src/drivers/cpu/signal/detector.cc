// SPDX-License-Identifier: Apache-2.0
// Detection heads on the CPU: images run in parallel.
#include "ops/signal/detector.h"

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

KernelPtr make_detections(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  return make_kernel([attrs = request.attrs, boxes = request.in(0).shape,
                      scores = request.in(1).shape,
                      room = request.out().shape[0]](const KernelArgs& args) {
    const auto* corners = static_cast<const float*>(args.inputs[0]);
    const Detector detector =
        detector_of(attrs, boxes, scores, corners, static_cast<const float*>(args.inputs[1]));
    std::vector<std::vector<Detection>> all(detector.images);
    parallel_for(0, detector.images, 100.0 * static_cast<double>(detector.count * detector.classes),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) all[i] = detect(attrs, detector, i);
                 });
    int64_t row = 0;
    for (int64_t image = 0; image < detector.images; ++image) {
      static_cast<int32_t*>(args.outputs[2])[image] = static_cast<int32_t>(all[image].size());
      require(row + std::ssize(all[image]) <= room, "[{}] the output has room for {} boxes",
              attrs.op()->name, room);
      for (const Detection& detection : all[image]) {
        const int64_t box = image * detector.count + detection.box;
        float* to = static_cast<float*>(args.outputs[0]) + row * 6;
        to[0] = static_cast<float>(detection.label);
        to[1] = detection.score;
        std::copy_n(corners + box * 4, 4, to + 2);
        static_cast<int64_t*>(args.outputs[1])[row++] = box;
      }
    }
    require(row == room, "[{}] {} boxes are kept, the output has room for {}", attrs.op()->name,
            row, room);
  });
}

class YoloBox {
 public:
  explicit YoloBox(const KernelRequest& request)
      : rule_(yolo_rule(request.attrs)),
        anchors_(request.attrs.ints("anchors")),
        classes_(request.attrs.i("class_num")),
        aware_(request.attrs.b("iou_aware")),
        wide_(request.in(1).dtype == DType::kI64),
        x_(request.in(0).shape) {}

  void operator()(const KernelArgs& args) const {
    const int64_t count = std::ssize(anchors_) / 2;
    parallel_for(0, x_[0] * count, 50.0 * static_cast<double>(x_[2] * x_[3]),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) anchor(args, i / count, i % count);
                 });
  }

 private:
  void anchor(const KernelArgs& args, int64_t n, int64_t a) const {
    const int64_t cells = x_[2] * x_[3], count = std::ssize(anchors_) / 2;
    const float* image = static_cast<const float*>(args.inputs[0]) + n * x_[1] * cells;
    const float* own = image + ((aware_ ? count : 0) + a * (5 + classes_)) * cells;
    float* boxes = static_cast<float*>(args.outputs[0]) + (n * count + a) * cells * 4;
    float* scores = static_cast<float*>(args.outputs[1]) + (n * count + a) * cells * classes_;
    for (int64_t i = 0; i < cells; ++i, boxes += 4, scores += classes_) {
      const float confidence =
          rule_.confidence(own[4 * cells + i], aware_ ? image + a * cells + i : nullptr);
      if (confidence < rule_.threshold) {
        std::fill_n(boxes, 4, 0.0f);
        std::fill_n(scores, classes_, 0.0f);
        continue;
      }
      const float raw[4] = {own[i], own[cells + i], own[2 * cells + i], own[3 * cells + i]};
      rule_.box({i / x_[3], i % x_[3], x_[2], x_[3], static_cast<float>(anchors_[2 * a]),
                 static_cast<float>(anchors_[2 * a + 1]), size(args, 2 * n), size(args, 2 * n + 1)},
                raw, boxes);
      for (int64_t c = 0; c < classes_; ++c)
        scores[c] = confidence * YoloRule::sigmoid(own[(5 + c) * cells + i]);
    }
  }
  float size(const KernelArgs& args, int64_t i) const {
    return wide_ ? static_cast<float>(static_cast<const int64_t*>(args.inputs[1])[i])
                 : static_cast<float>(static_cast<const int32_t*>(args.inputs[1])[i]);
  }

  YoloRule rule_;
  std::vector<int64_t> anchors_;
  int64_t classes_;
  bool aware_, wide_;
  Shape x_;
};

KernelPtr make_yolo_box(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  return make_kernel(YoloBox(request));
}

const KernelRegistrar kMulticlass("cpu", "multiclass_nms", "classes", 10, make_detections);
const KernelRegistrar kMatrix("cpu", "matrix_nms", "classes", 10, make_detections);
const KernelRegistrar kYolo("cpu", "yolo_box", "plain", 10, make_yolo_box);

}  // namespace

}  // namespace anymps::cpu
