// SPDX-License-Identifier: Apache-2.0
// roi_align, deform_conv and center_crop_pad on the CPU. Where samples lie is found once for all
// channels.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "drivers/cpu/common/copy.h"
#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"
#include "ops/layers/window.h"
#include "ops/signal/sampling.h"
#include "semantics/interpolation.h"

namespace anymps::cpu {

namespace {

// Four neighbours in a plane and their weights.
struct Corners {
  int64_t at[4] = {0, 0, 0, 0};
  float weight[4] = {0, 0, 0, 0};
};

class RoiAlign {
 public:
  explicit RoiAlign(const KernelRequest& request)
      : x_(request.in(0).shape),
        y_(request.out().shape),
        rule_(aligned_regions(request.attrs, x_, y_)),
        average_(request.attrs.s("mode") == "avg"),
        wide_(request.in(2).dtype == DType::kI64) {}

  void operator()(const KernelArgs& args) const {
    const double ns = static_cast<double>(y_[1] * y_[2] * y_[3]) * 40;
    parallel_for(0, y_[0], ns, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) region(args, r);
    });
  }

 private:
  void region(const KernelArgs& args, int64_t r) const {
    const int64_t n =
        region_image(rule_.op,
                     static_cast<double>(wide_ ? static_cast<const int64_t*>(args.inputs[2])[r]
                                               : static_cast<const int32_t*>(args.inputs[2])[r]),
                     x_[0]);
    const float* roi = static_cast<const float*>(args.inputs[1]) + r * 4;
    const AlignedRegion region(rule_, {roi[0], roi[1], roi[2], roi[3]}, r);
    const int64_t size = x_[2] * x_[3];
    const float* image = static_cast<const float*>(args.inputs[0]) + n * x_[1] * size;
    float* y = static_cast<float*>(args.outputs[0]) + r * y_[1] * y_[2] * y_[3];
    thread_local std::vector<Corners> corners;  // of the samples that lie inside
    for (int64_t i = 0; i < y_[2]; ++i)
      for (int64_t j = 0; j < y_[3]; ++j) {
        corners.clear();
        bool outside = false;
        region.for_each_sample(i, j, [&](const AlignedRegion::Sample& sample) {
          outside |= !sample.inside;
          if (!sample.inside) return;
          Corners& own = corners.emplace_back();
          for (size_t k = 0; k < 4; ++k) {
            own.at[k] = sample.corners[k].row * x_[3] + sample.corners[k].column;
            own.weight[k] = static_cast<float>(sample.corners[k].weight);
          }
        });
        for (int64_t c = 0; c < y_[1]; ++c)
          y[(c * y_[2] + i) * y_[3] + j] =
              average_ ? average(corners, image + c * size, region.samples())
                       : largest(corners, image + c * size, outside);
      }
  }
  static float average(const std::vector<Corners>& all, const float* plane, double count) {
    double sum = 0;
    for (const Corners& s : all)
      for (int k = 0; k < 4; ++k) sum += double{s.weight[k] * plane[s.at[k]]};
    return static_cast<float>(sum / count);
  }
  // A sample outside is 0.
  static float largest(const std::vector<Corners>& all, const float* plane, bool outside) {
    float best = 0;
    bool first = !outside;
    for (const Corners& s : all) {
      float own = s.weight[0] * plane[s.at[0]];
      for (int k = 1; k < 4; ++k) own = std::max(own, s.weight[k] * plane[s.at[k]]);
      best = first ? own : std::max(best, own);
      first = false;
    }
    return best;
  }

  Shape x_, y_;
  AlignedRegion::Rule rule_;
  bool average_, wide_;
};

bool dense_f32(const KernelRequest& request, std::string& why) {
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (request.has(i) && !request.in(i).contiguous())
      return refuse<bool>(why, fmt::format("input {} is not contiguous", i));
  if (request.in(0).dtype != DType::kF32 || !request.out().contiguous())
    return refuse<bool>(why, "not dense f32");
  if (request.in(0).count() == 0) return refuse<bool>(why, "x is empty");
  return true;
}

CPU_KERNEL(roi_align, "corners") {
  if (is_half(request.in(0).dtype)) return widened(request, make_roi_align, why);
  if (!dense_f32(request, why)) return nullptr;
  return make_kernel(RoiAlign(request));
}

class DeformConv {
 public:
  explicit DeformConv(const KernelRequest& request)
      : x_(request.in(0).shape),
        w_(request.in(1).shape),
        y_(request.out().shape),
        window_(resolve_window(request.attrs, {x_[2], x_[3]}, {w_[2], w_[3]})),
        groups_(request.attrs.i("groups")),
        offset_groups_(request.attrs.i("offset_groups")),
        bias_(request.has(3)),
        mask_(request.has(4)) {}

  void operator()(const KernelArgs& args) const {
    const int64_t places = y_[2] * y_[3];
    const double ns = static_cast<double>(w_[2] * w_[3]) *
                      (static_cast<double>(x_[1]) * 6 + static_cast<double>(y_[1] * w_[1]));
    parallel_for(0, y_[0] * places, ns, [&](int64_t begin, int64_t end) {
      thread_local std::vector<float> column;  // x under the bent window, [C, taps]
      column.resize(x_[1] * w_[2] * w_[3]);
      for (int64_t i = begin; i < end; ++i) {
        gather(args, i / places, i % places, column.data());
        multiply(args, i / places, i % places, column.data());
      }
    });
  }

 private:
  void gather(const KernelArgs& args, int64_t n, int64_t place, float* column) const {
    const int64_t taps = w_[2] * w_[3], places = y_[2] * y_[3], size = x_[2] * x_[3];
    const int64_t per_set = x_[1] / offset_groups_;
    const auto* offsets = static_cast<const float*>(args.inputs[2]);
    const auto* mask = mask_ ? static_cast<const float*>(args.inputs[4]) : nullptr;
    for (int64_t g = 0; g < offset_groups_; ++g)
      for (int64_t k = 0; k < taps; ++k) {
        const int64_t set = (n * offset_groups_ + g) * taps + k;
        const double y = from(0, place / y_[3], k / w_[3]) + offsets[set * 2 * places + place];
        const double x =
            from(1, place % y_[3], k % w_[3]) + offsets[(set * 2 + 1) * places + place];
        const Corners corners = sample(y, x, mask ? mask[set * places + place] : 1);
        for (int64_t c = g * per_set; c < (g + 1) * per_set; ++c) {
          const float* plane = static_cast<const float*>(args.inputs[0]) + (n * x_[1] + c) * size;
          float sum = 0;
          for (int m = 0; m < 4; ++m)
            if (corners.weight[m] != 0) sum += corners.weight[m] * plane[corners.at[m]];
          column[c * taps + k] = sum;
        }
      }
  }
  void multiply(const KernelArgs& args, int64_t n, int64_t place, const float* column) const {
    const int64_t inner = w_[1] * w_[2] * w_[3], outputs = y_[1] / groups_;
    const auto* w = static_cast<const float*>(args.inputs[1]);
    auto* y = static_cast<float*>(args.outputs[0]);
    for (int64_t o = 0; o < y_[1]; ++o) {
      const float *row = w + o * inner, *part = column + o / outputs * inner;
      float sum = bias_ ? static_cast<const float*>(args.inputs[3])[o] : 0;
      for (int64_t k = 0; k < inner; ++k) sum += row[k] * part[k];
      y[(n * y_[1] + o) * y_[2] * y_[3] + place] = sum;
    }
  }
  double from(size_t axis, int64_t at, int64_t tap) const {
    return static_cast<double>(at * window_.strides[axis] + tap * window_.dilations[axis] -
                               window_.pads_begin[axis]);
  }
  Corners sample(double y, double x, float scale) const {
    Corners corners;
    int k = 0;
    for (const PlaneCorner& corner : plane_corners(x_[2], x_[3], y, x)) {
      if (corner.inside) {
        corners.at[k] = corner.row * x_[3] + corner.column;
        corners.weight[k] = scale * static_cast<float>(corner.weight);
      }
      ++k;
    }
    return corners;
  }

  Shape x_, w_, y_;
  Window window_;
  int64_t groups_, offset_groups_;
  bool bias_, mask_;
};

CPU_KERNEL(deform_conv, "columns") {
  if (is_half(request.in(0).dtype)) return widened(request, make_deform_conv, why);
  if (!dense_f32(request, why)) return nullptr;
  return make_kernel(DeformConv(request));
}

CPU_KERNEL(center_crop_pad, "copy") {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  Shape inside = x.shape;
  int64_t from = 0, to = 0;
  const int64_t size = size_of(x.dtype);
  for (size_t i = 0; i < inside.size(); ++i) {
    const int64_t more = y.shape[i] - x.shape[i];
    inside[i] = std::min(x.shape[i], y.shape[i]);
    to += std::max<int64_t>(more, 0) / 2 * y.strides[i] * size;
    from += std::max<int64_t>(-more, 0) / 2 * x.strides[i] * size;
  }
  return make_kernel(
      [=, bytes = y.bytes(), whole = inside == y.shape,
       copy = StridedCopy(size_of(x.dtype), inside, y.strides, x.strides)](const KernelArgs& args) {
        if (!whole) clear(args.outputs[0], bytes);
        copy.run(static_cast<char*>(args.outputs[0]) + to,
                 static_cast<const char*>(args.inputs[0]) + from);
      });
}

}  // namespace

}  // namespace anymps::cpu
