// SPDX-License-Identifier: Apache-2.0
// Linear and cubic resizing of images in f32: each row of the result is made at once, first its
// line out of a few lines of the input, then its pixels out of those of that line, which is still
// in the cache. Nothing larger than a line is kept in between.
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/signal/resize.h"
#include "drivers/cpu/signal/resize_simd.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

constexpr double kTapNs = 0.1;  // of one element

AxisTaps taps_of(const ResizeAxis& axis, const ResizeFilter& filter) {
  AxisTaps taps;
  taps.in = axis.in;
  taps.out = axis.out;
  for (int64_t at = 0; at < axis.out; ++at) {
    for (const ResizeTap& tap : axis.taps(at, filter)) {
      taps.indices.push_back(tap.index);
      taps.weights.push_back(static_cast<float>(tap.weight));
    }
    taps.first.push_back(std::ssize(taps.indices));
  }
  if (taps.out > 0) taps.same = taps.count(0);
  for (int64_t at = 0; at < taps.out; ++at)
    if (taps.count(at) != taps.same) taps.same = 0;
  return taps;
}

bool has_gap(const AxisTaps& taps) {
  for (int64_t j = 0; j < taps.out; ++j)
    if (taps.count(j) == 0) return true;
  return false;
}

class ResizeRows final : public Kernel {
 public:
  ResizeRows(int64_t images, ResizePlan plan) : plan_(std::move(plan)) {
    rows_ = images * std::max<int64_t>(1, plan_.lines.out);
    buffer_ = (plan_.buffer() + 15) / 16 * 16;
    parts_ = std::min<int64_t>(rows_, 4 * static_cast<int64_t>(current_threads()));
  }

  void run(const KernelArgs& args) const override {
    const double taps = static_cast<double>(std::ssize(plan_.line.indices) * plan_.inner) +
                        (plan_.lines.out > 0 ? 2.0 * static_cast<double>(plan_.line_size()) : 0);
    const double ns = kTapNs * taps * static_cast<double>(rows_) / static_cast<double>(parts_);
    parallel_for(0, parts_, ns, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part)
        run_resize(plan_, static_cast<const float*>(args.inputs[0]), part * rows_ / parts_,
                   (part + 1) * rows_ / parts_, static_cast<float*>(args.scratch) + part * buffer_,
                   static_cast<float*>(args.outputs[0]));
    });
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(parts_ * buffer_) * sizeof(float);
  }
  std::string detail() const override {
    return plan_.inner >= resize_lanes() ? "pixels" : plan_.picked.empty() ? "elements" : "picked";
  }

 private:
  ResizePlan plan_;
  int64_t rows_ = 0, buffer_ = 0, parts_ = 1;
};

KernelPtr make_rows(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (request.attrs.s("mode") == "nearest") return refuse(why, "mode is nearest");
  if (is_half(x.dtype)) return widened(request, make_rows, why);
  if (x.dtype != DType::kF32) return refuse(why, fmt::format("dtype {}", name(x.dtype)));
  if (!x.contiguous() || !y.contiguous()) return refuse(why, "not contiguous");
  if (y.count() == 0 || x.count() == 0) return refuse(why, "empty");
  const auto axes = resized_axes(request, why);
  if (!axes) return nullptr;
  const std::vector<size_t> resized = neighbouring_axes(*axes, why);
  if (resized.empty()) return nullptr;
  const ResizeFilter filter = resize_filter(request.attrs);
  ResizePlan plan;
  plan.line = taps_of((*axes)[resized.back()], filter);
  if (resized.size() == 2) plan.lines = taps_of((*axes)[resized.front()], filter);
  if (has_gap(plan.line) || has_gap(plan.lines)) return refuse(why, "elements outside of a crop");
  int64_t images = 1;
  for (size_t i = 0; i < resized.front(); ++i) images *= x.shape[i];
  for (size_t i = resized.back() + 1; i < x.shape.size(); ++i) plan.inner *= x.shape[i];
  if (plan.inner < resize_lanes()) plan.picked = make_picked(plan.line, plan.inner);
  return std::make_shared<ResizeRows>(images, std::move(plan));
}

const KernelRegistrar kResizeRows("cpu", "resize", "rows", 15, make_rows);

}  // namespace

}  // namespace anymps::cpu
