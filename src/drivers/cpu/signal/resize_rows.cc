// SPDX-License-Identifier: Apache-2.0
// Linear and cubic resizing of images in f32: each row of the result is made at once, first its
// line out of a few lines of the input, then its pixels out of those of that line, which is still
// in the cache. Nothing larger than a line is kept in between.
#include <cstring>

#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/isa.h"
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
  return taps;
}

bool has_gap(const AxisTaps& taps) {
  for (int64_t j = 0; j < taps.out; ++j)
    if (taps.count(j) == 0) return true;
  return false;
}

// [outer, lines, line, inner]; without lines it is one axis that is resized.
class ResizeRows final : public Kernel {
 public:
  ResizeRows(int64_t outer, std::optional<AxisTaps> lines, AxisTaps line, int64_t inner)
      : outer_(outer), inner_(inner), lines_(std::move(lines)), line_(std::move(line)) {
    if (inner_ < resize_lanes()) picked_ = make_picked(line_, inner_);
    const int64_t reads = std::max(line_.in * inner_, picked_.reads);
    buffer_ = (reads + 15) / 16 * 16;
    parts_ = std::min<int64_t>(rows(), 4 * static_cast<int64_t>(current_threads()));
  }

  void run(const KernelArgs& args) const override {
    const double taps = static_cast<double>(line_.indices.size() * static_cast<size_t>(inner_)) +
                        (lines_ ? 2.0 * static_cast<double>(line_.in * inner_) : 0);
    const double ns = kTapNs * taps * static_cast<double>(rows()) / static_cast<double>(parts_);
    parallel_for(0, parts_, ns, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part) {
        float* buffer = static_cast<float*>(args.scratch) + part * buffer_;
        for (int64_t row = part * rows() / parts_; row < (part + 1) * rows() / parts_; ++row)
          run_row(args, row, buffer);
      }
    });
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(parts_ * buffer_) * sizeof(float);
  }
  std::string detail() const override {
    return inner_ >= resize_lanes() ? "pixels" : picked_.empty() ? "elements" : "picked";
  }

 private:
  int64_t rows() const { return outer_ * (lines_ ? lines_->out : 1); }

  void run_row(const KernelArgs& args, int64_t row, float* buffer) const {
    const int64_t n = line_.in * inner_, lines_out = lines_ ? lines_->out : 1;
    const float* from =
        static_cast<const float*>(args.inputs[0]) + row / lines_out * (lines_ ? lines_->in : 1) * n;
    float* to = static_cast<float*>(args.outputs[0]) + row * line_.out * inner_;
    if (lines_) {
      sum_lines(*lines_, row % lines_out, from, n, buffer);
      from = buffer;
    } else if (picked_.reads > n) {
      from = static_cast<const float*>(std::memcpy(buffer, from, sizeof(float) * n));
    }
    if (inner_ >= resize_lanes()) return mix_pixels(line_, inner_, from, to);
    if (!picked_.empty()) return mix_picked(picked_, from, to);
    for (int64_t j = 0; j < line_.out; ++j)
      for (int64_t i = 0; i < inner_; ++i) {
        float sum = 0;
        for (int64_t t = line_.first[j]; t < line_.first[j + 1]; ++t)
          sum += line_.weights[t] * from[line_.indices[t] * inner_ + i];
        *to++ = sum;
      }
  }

  int64_t outer_, inner_, buffer_ = 0, parts_ = 1;
  std::optional<AxisTaps> lines_;
  AxisTaps line_;
  PickedRow picked_;
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
  std::vector<size_t> resized;
  for (size_t i = 0; i < axes->size(); ++i)
    if (!(*axes)[i].identity()) resized.push_back(i);
  if (resized.empty() || resized.size() > 2 || resized.back() - resized.front() > 1)
    return refuse(why, "not one axis, or two that follow each other");
  const ResizeFilter filter = resize_filter(request.attrs);
  AxisTaps line = taps_of((*axes)[resized.back()], filter);
  std::optional<AxisTaps> lines;
  if (resized.size() == 2) lines = taps_of((*axes)[resized.front()], filter);
  if (has_gap(line) || (lines && has_gap(*lines))) return refuse(why, "elements outside of a crop");
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < resized.front(); ++i) outer *= x.shape[i];
  for (size_t i = resized.back() + 1; i < x.shape.size(); ++i) inner *= x.shape[i];
  return std::make_shared<ResizeRows>(outer, std::move(lines), std::move(line), inner);
}

const KernelRegistrar kResizeRows("cpu", "resize", "rows", 15, make_rows);

}  // namespace

}  // namespace anymps::cpu
