// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression on the CPU: images and classes in parallel, and boxes compared only with
// those of their own class.
#include <unordered_map>

#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"
#include "semantics/box_selection.h"

namespace anymps::cpu {

namespace {

class NonMaxSuppression {
 public:
  explicit NonMaxSuppression(const KernelRequest& request)
      : boxes_(request.in(0).shape), classes_(request.in(1).shape[1]), y_(request.out()) {
    centres_ = request.attrs.b("center_point_box");
    for (size_t i = 2; i < 5; ++i) given_[i - 2] = request.has(i) && request.in(i).count() > 0;
  }

  void operator()(const KernelArgs& args) const {
    BoxSelection selection{static_cast<const float*>(args.inputs[0]),
                           static_cast<const float*>(args.inputs[1]), boxes_[0], classes_,
                           boxes_[1]};
    selection.centres = centres_;
    if (given_[0]) selection.most = *static_cast<const int64_t*>(args.inputs[2]);
    if (given_[1]) selection.iou_threshold = *static_cast<const float*>(args.inputs[3]);
    selection.has_score_threshold = given_[2];
    if (given_[2]) selection.score_threshold = *static_cast<const float*>(args.inputs[4]);
    std::vector<std::vector<int64_t>> kept(boxes_[0] * classes_);
    parallel_for(0, boxes_[0] * classes_, 50.0 * static_cast<double>(boxes_[1]),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     kept[i] = selection.keep(i / classes_, i % classes_);
                 });
    size_t count = 0;
    for (const auto& list : kept) count += list.size();
    require(static_cast<int64_t>(count) == y_.shape[0],
            "[non_max_suppression] {} boxes are kept, but the output has room for {}", count,
            y_.shape[0]);
    auto* y = static_cast<int64_t*>(args.outputs[0]);
    for (size_t i = 0; i < kept.size(); ++i)
      for (const int64_t box : kept[i]) {
        const auto list = static_cast<int64_t>(i);
        y[0] = list / classes_;
        y[y_.strides[1]] = list % classes_;
        y[2 * y_.strides[1]] = box;
        y += y_.strides[0];
      }
  }

 private:
  Shape boxes_;
  int64_t classes_;
  TensorDesc y_;
  bool centres_ = false, given_[3] = {false, false, false};
};

bool dense_inputs(const KernelRequest& request, std::string& why) {
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (request.has(i) && !request.in(i).contiguous())
      return refuse<bool>(why, fmt::format("input {} is not contiguous", i));
  return true;
}

CPU_KERNEL(non_max_suppression, "classes") {
  if (!dense_inputs(request, why)) return nullptr;
  return make_kernel(NonMaxSuppression(request));
}

class SuppressBoxes {
 public:
  explicit SuppressBoxes(const KernelRequest& request)
      : shape_(request.out().shape),
        iou_(static_cast<float>(request.attrs.f("iou_threshold"))),
        least_(static_cast<float>(request.attrs.f("score_threshold"))),
        per_class_(request.attrs.b("per_class")),
        given_classes_(request.has(2)),
        wide_(given_classes_ && request.in(2).dtype == DType::kI64) {
    const std::string& mode = request.attrs.s("coordinates");
    centres_ = mode.starts_with("centers");
    width_first_ = mode.ends_with("width_first");
  }

  void operator()(const KernelArgs& args) const {
    parallel_for(0, shape_[0], 100.0 * static_cast<double>(shape_[1] * shape_[2]),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t n = begin; n < end; ++n) image(args, n);
                 });
  }

 private:
  struct Candidate {
    int64_t box, column, category;
    float score;
  };

  void image(const KernelArgs& args, int64_t n) const {
    const int64_t count = shape_[1], classes = shape_[2];
    const float* corners = static_cast<const float*>(args.inputs[0]) + n * count * 4;
    const float* scores = static_cast<const float*>(args.inputs[1]) + n * count * classes;
    float* y = static_cast<float*>(args.outputs[0]) + n * count * classes;
    std::fill_n(y, count * classes, 0.0f);
    std::vector<Box> boxes;
    std::vector<Candidate> candidates;
    for (int64_t i = 0; i < count; ++i) {
      boxes.push_back(box_of(corners + i * 4));
      for (int64_t c = 0; c < classes; ++c)
        if (scores[i * classes + c] > least_)
          candidates.push_back({i, c, category(args, n * count + i, c), scores[i * classes + c]});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    std::unordered_map<int64_t, std::vector<int64_t>> kept;  // boxes by class, or all under 0
    for (const Candidate& candidate : candidates) {
      std::vector<int64_t>& rivals = kept[per_class_ ? candidate.category : 0];
      const Box& box = boxes[candidate.box];
      const bool lost = std::any_of(rivals.begin(), rivals.end(), [&](int64_t better) {
        if (better == candidate.box) return !per_class_;
        return overlap(box, boxes[better], iou_);
      });
      if (lost) continue;
      rivals.push_back(candidate.box);
      y[candidate.box * classes + candidate.column] = candidate.score;
    }
  }
  Box box_of(const float* b) const {
    const std::array<float, 4> turned{b[1], b[0], b[3], b[2]};
    if (width_first_) b = turned.data();
    return centres_ ? Box::centre(b[0], b[1], b[2], b[3]) : Box::corners(b);
  }
  int64_t category(const KernelArgs& args, int64_t box, int64_t column) const {
    if (!given_classes_) return column;
    return wide_ ? static_cast<const int64_t*>(args.inputs[2])[box]
                 : static_cast<const int32_t*>(args.inputs[2])[box];
  }

  Shape shape_;
  float iou_, least_;
  bool per_class_, given_classes_, wide_, centres_ = false, width_first_ = false;
};

CPU_KERNEL(suppress_boxes, "classes") {
  if (!dense_inputs(request, why)) return nullptr;
  if (!request.out().contiguous()) return refuse(why, "y is not contiguous");
  return make_kernel(SuppressBoxes(request));
}

}  // namespace

}  // namespace anymps::cpu
