// SPDX-License-Identifier: Apache-2.0
// roi_align, deform_conv and center_crop_pad on the CPU. Where samples lie is found once for all
// channels.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "drivers/cpu/common/copy.h"
#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"
#include "ops/layers/window.h"

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
        half_pixel_(request.attrs.b("half_pixel")),
        average_(request.attrs.s("mode") == "avg"),
        scale_(request.attrs.f("spatial_scale")),
        ratio_(request.attrs.i("sampling_ratio")),
        wide_(request.in(2).dtype == DType::kI64) {}

  void operator()(const KernelArgs& args) const {
    const double ns = static_cast<double>(y_[1] * y_[2] * y_[3]) * 40;
    parallel_for(0, y_[0], ns, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) region(args, r);
    });
  }

 private:
  void region(const KernelArgs& args, int64_t r) const {
    const int64_t n = wide_ ? static_cast<const int64_t*>(args.inputs[2])[r]
                            : static_cast<const int32_t*>(args.inputs[2])[r];
    require(n >= 0 && n < x_[0], "[roi_align] a region is of image {}, there are {}", n, x_[0]);
    const float* roi = static_cast<const float*>(args.inputs[1]) + r * 4;
    double corner[4];
    for (int k = 0; k < 4; ++k) {
      corner[k] = double{roi[k]} * scale_ - (half_pixel_ ? 0.5 : 0);
      require(std::isfinite(corner[k]), "[roi_align] region {} has the coordinate {}", r,
              corner[k]);
    }
    double w = corner[2] - corner[0], h = corner[3] - corner[1];
    if (!half_pixel_) w = std::max(w, 1.0), h = std::max(h, 1.0);
    const double cell_h = h / static_cast<double>(y_[2]), cell_w = w / static_cast<double>(y_[3]);
    const int64_t rows = samples(cell_h, r), columns = samples(cell_w, r), size = x_[2] * x_[3];
    const float* image = static_cast<const float*>(args.inputs[0]) + n * x_[1] * size;
    float* y = static_cast<float*>(args.outputs[0]) + r * y_[1] * y_[2] * y_[3];
    thread_local std::vector<Corners> corners;
    corners.clear();
    for (int64_t i = 0; i < y_[2]; ++i)
      for (int64_t j = 0; j < y_[3]; ++j) {
        corners.clear();
        for (int64_t a = 0; a < rows; ++a)
          for (int64_t b = 0; b < columns; ++b)
            corners.push_back(sample(place(corner[1], i, cell_h, a, rows),
                                     place(corner[0], j, cell_w, b, columns)));
        for (int64_t c = 0; c < y_[1]; ++c)
          y[(c * y_[2] + i) * y_[3] + j] = mix(corners, image + c * size);
      }
  }

  int64_t samples(double cell, int64_t r) const {
    require(ratio_ > 0 || cell < 1e6, "[roi_align] region {} is too large", r);
    return ratio_ > 0 ? ratio_ : std::max<int64_t>(0, static_cast<int64_t>(std::ceil(cell)));
  }
  static double place(double start, int64_t cell, double size, int64_t k, int64_t of) {
    return start + static_cast<double>(cell) * size +
           (static_cast<double>(k) + 0.5) * size / static_cast<double>(of);
  }
  Corners sample(double y, double x) const {
    Corners corners;
    const int64_t height = x_[2], width = x_[3];
    if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 &&
          x <= static_cast<double>(width)))
      return corners;
    y = std::clamp(y, 0.0, static_cast<double>(height - 1));
    x = std::clamp(x, 0.0, static_cast<double>(width - 1));
    const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
    const double ty = y - static_cast<double>(top), tx = x - static_cast<double>(left);
    for (int k = 0; k < 4; ++k) {
      const int64_t row = std::min(top + (k >> 1), height - 1);
      corners.at[k] = row * width + std::min(left + (k & 1), width - 1);
      corners.weight[k] = static_cast<float>((k & 2 ? ty : 1 - ty) * (k & 1 ? tx : 1 - tx));
    }
    return corners;
  }
  float mix(const std::vector<Corners>& all, const float* plane) const {
    double sum = 0;
    float largest = 0;
    bool first = true;
    for (const Corners& s : all) {
      float parts[4];
      for (int k = 0; k < 4; ++k) parts[k] = s.weight[k] * plane[s.at[k]];
      sum += double{parts[0]} + parts[1] + parts[2] + parts[3];
      const float best = std::max(std::max(parts[0], parts[1]), std::max(parts[2], parts[3]));
      largest = first ? best : std::max(largest, best);
      first = false;
    }
    if (!average_) return largest;
    return static_cast<float>(sum / static_cast<double>(std::max<size_t>(all.size(), 1)));
  }

  Shape x_, y_;
  bool half_pixel_, average_;
  double scale_;
  int64_t ratio_;
  bool wide_;
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

KernelPtr make_roi_align(const KernelRequest& request, std::string& why) {
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
      column.resize(static_cast<size_t>(x_[1] * w_[2] * w_[3]));
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
    const int64_t height = x_[2], width = x_[3];
    if (!(y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width)))
      return corners;
    const auto top = static_cast<int64_t>(std::floor(y)),
               left = static_cast<int64_t>(std::floor(x));
    for (int k = 0; k < 4; ++k) {
      const int64_t row = top + (k >> 1), column = left + (k & 1);
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      corners.at[k] = row * width + column;
      corners.weight[k] =
          scale * static_cast<float>((1 - std::abs(y - static_cast<double>(row))) *
                                     (1 - std::abs(x - static_cast<double>(column))));
    }
    return corners;
  }

  Shape x_, w_, y_;
  Window window_;
  int64_t groups_, offset_groups_;
  bool bias_, mask_;
};

KernelPtr make_deform_conv(const KernelRequest& request, std::string& why) {
  if (is_half(request.in(0).dtype)) return widened(request, make_deform_conv, why);
  if (!dense_f32(request, why)) return nullptr;
  return make_kernel(DeformConv(request));
}

KernelPtr make_center(const KernelRequest& request, std::string& why) {
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

const KernelRegistrar kRoiAlign("cpu", "roi_align", "corners", 10, make_roi_align);
const KernelRegistrar kDeformConv("cpu", "deform_conv", "columns", 10, make_deform_conv);
const KernelRegistrar kCenter("cpu", "center_crop_pad", "copy", 10, make_center);

}  // namespace

}  // namespace anymps::cpu
