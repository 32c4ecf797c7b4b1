// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions and their gradients on channels-first f32 images: a plane is copied to
// memory where its borders are zeros and the columns of each step lie together, so that the window
// reads dense vectors. oneDNN's kernels would have every image turned channels last and back.
#include <vector>

#include "drivers/cpu/layers/convolution.h"
#include "drivers/cpu/layers/depthwise_planes_simd.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

using namespace convolution;

constexpr double kTapNs = 0.06;             // of one weight and one element
constexpr int64_t kMostElements = 1 << 20;  // of a plane's copy
constexpr int64_t kSlack = 64;              // that a vector may read beyond the last row

struct Extent {
  int64_t rows = 0, columns = 0;
  int64_t count() const { return rows * columns; }
};

// A copy of a plane in which taps are offsets. The plane's elements may lie `spread` apart in it,
// as a gradient's do where windows move by more than one pixel.
class PlaneCopy {
 public:
  PlaneCopy() = default;
  PlaneCopy(Extent in, Extent spread, Extent out, Extent kernel, Extent stride, Extent dilation,
            Extent pad)
      : in_(in), spread_(spread), pad_(pad), phases_(stride.columns) {
    const int64_t reach = (kernel.columns - 1) * dilation.columns;
    width_ = out.columns + reach / phases_;
    height_ = (out.rows - 1) * stride.rows + (kernel.rows - 1) * dilation.rows + 1;
    window_.rows = out.rows;
    window_.columns = out.columns;
    window_.taps = kernel.count();
    window_.x_row = stride.rows * phases_ * width_;
    for (int64_t i = 0; i < kernel.rows; ++i)
      for (int64_t j = 0; j < kernel.columns; ++j) {
        const int64_t column = j * dilation.columns;
        offsets_.push_back((i * dilation.rows * phases_ + column % phases_) * width_ +
                           column / phases_);
      }
  }

  int64_t elements() const { return height_ * phases_ * width_; }
  int64_t taps() const { return window_.taps; }

  // The window over the copy of `plane` in the calling thread's memory, until the next call.
  PlaneWindow fill(const float* plane) const {
    thread_local std::vector<float> memory;  // NOLINT: kept, so that a run allocates nothing
    if (std::ssize(memory) < elements() + kSlack) memory.resize(elements() + kSlack);
    float* to = memory.data();
    for (int64_t r = 0; r < height_; ++r) {
      const int64_t at = r - pad_.rows, row = at / spread_.rows;
      const bool inside = at >= 0 && at % spread_.rows == 0 && row < in_.rows;
      for (int64_t phase = 0; phase < phases_; ++phase, to += width_)
        if (inside)
          fill_row(plane + row * in_.columns, phase, to);
        else
          std::fill_n(to, width_, 0.0f);
    }
    PlaneWindow window = window_;
    window.x = memory.data();
    window.offsets = offsets_.data();
    return window;
  }

 private:
  // Columns phase - pad, phase - pad + phases, …
  void fill_row(const float* row, int64_t phase, float* to) const {
    if (spread_.columns == 1 && phases_ == 1) {
      const int64_t skip = std::max<int64_t>(-pad_.columns, 0);
      const int64_t begin = std::clamp<int64_t>(pad_.columns, 0, width_);
      const int64_t count = std::clamp<int64_t>(in_.columns - skip, 0, width_ - begin);
      std::fill_n(to, begin, 0.0f);
      std::copy_n(row + std::min(skip, in_.columns), count, to + begin);
      std::fill(to + begin + count, to + width_, 0.0f);
      return;
    }
    std::fill_n(to, width_, 0.0f);
    if (phases_ == 1) {
      for (int64_t j = 0; j < in_.columns; ++j) {
        const int64_t at = pad_.columns + j * spread_.columns;
        if (at >= 0 && at < width_) to[at] = row[j];
      }
      return;
    }
    const int64_t ahead = pad_.columns - phase;  // pixels of padding in this phase
    const int64_t begin = ahead > 0 ? (ahead + phases_ - 1) / phases_ : 0;
    const int64_t end =
        std::min(width_, in_.columns + ahead <= 0 ? 0 : (in_.columns + ahead - 1) / phases_ + 1);
    for (int64_t i = begin; i < end; ++i) to[i] = row[i * phases_ - ahead];
  }

  Extent in_, spread_, pad_;
  int64_t phases_ = 1, width_ = 0, height_ = 0;
  PlaneWindow window_;
  std::vector<int64_t> offsets_;
};

struct DepthwisePlanes {
  int64_t images = 0, channels = 0;
  Extent x, y, kernel, stride, dilation, pad;
};

std::optional<DepthwisePlanes> planes_of(const KernelRequest& request, const TensorDesc& x,
                                         const TensorDesc& w, const TensorDesc& y,
                                         std::string& why) {
  using Result = std::optional<DepthwisePlanes>;
  if (request.attrs.s("layout") != "channels_first") return refuse<Result>(why, "channels last");
  if (x.shape.size() != 4) return refuse<Result>(why, "not two spatial axes");
  const int64_t groups = request.attrs.i("groups");
  if (groups == 1 || groups != x.shape[1] || groups != y.shape[1])
    return refuse<Result>(why, "not depthwise");
  if (request.attrs.s("weights_layout") == "*IO") return refuse<Result>(why, "weights_layout");
  for (const TensorDesc* t : {&x, &w, &y}) {
    if (t->dtype != DType::kF32) return refuse<Result>(why, "not f32");
    if (!t->contiguous()) return refuse<Result>(why, "strides");
  }
  const Window window = resolve_window(request.attrs, spatial_of(x.shape), spatial_of(w.shape));
  const auto pair = [](const Shape& of, size_t at = 0) { return Extent{of[at], of[at + 1]}; };
  return DepthwisePlanes{x.shape[0],
                         groups,
                         pair(x.shape, 2),
                         pair(y.shape, 2),
                         pair(window.kernel),
                         pair(window.strides),
                         pair(window.dilations),
                         pair(window.pads_begin)};
}

PlaneCopy copy_of_x(const DepthwisePlanes& p) {
  return {p.x, {1, 1}, p.y, p.kernel, p.stride, p.dilation, p.pad};
}

// y = w * x, or dx = w turned around * dy.
class PlaneConvolution final : public Kernel {
 public:
  PlaneConvolution(const DepthwisePlanes& p, PlaneCopy copy, Extent in, Extent out, bool turned,
                   bool bias)
      : images_(p.images),
        channels_(p.channels),
        in_(in.count()),
        out_(out.count()),
        copy_(std::move(copy)),
        turned_(turned),
        bias_(bias) {}

  size_t scratch_bytes() const override {
    return turned_ ? sizeof(float) * channels_ * copy_.taps() : 0;
  }

  void run(const KernelArgs& args) const override {
    const auto input = [&](size_t i) { return static_cast<const float*>(args.inputs[i]); };
    auto* const y = static_cast<float*>(args.outputs[0]);
    const float* w = input(1);
    const int64_t taps = copy_.taps();
    if (turned_) {
      auto* const turned = static_cast<float*>(args.scratch);
      for (int64_t c = 0; c < channels_; ++c)
        std::reverse_copy(w + c * taps, w + (c + 1) * taps, turned + c * taps);
      w = turned;
    }
    const double ns = kTapNs * static_cast<double>(out_ * taps + copy_.elements());
    parallel_for(0, images_ * channels_, ns, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t c = i % channels_;
        run_plane(copy_.fill(input(0) + i * in_), w + c * taps, bias_ ? input(2)[c] : 0,
                  y + i * out_);
      }
    });
  }
  std::string detail() const override { return "planes"; }

 private:
  int64_t images_, channels_, in_, out_;
  PlaneCopy copy_;
  bool turned_, bias_;
};

class PlaneTaps final : public Kernel {
 public:
  PlaneTaps(const DepthwisePlanes& p, PlaneCopy copy) : p_(p), copy_(std::move(copy)) {}
  size_t scratch_bytes() const override { return sizeof(double) * p_.channels * copy_.taps(); }

  void run(const KernelArgs& args) const override {
    const auto* const dy = static_cast<const float*>(args.inputs[0]);
    const auto* const x = static_cast<const float*>(args.inputs[1]);
    auto* const dw = static_cast<float*>(args.outputs[0]);
    const int64_t taps = copy_.taps();
    const double ns = kTapNs * static_cast<double>(p_.y.count() * taps + copy_.elements());
    parallel_for(
        0, p_.channels, ns * static_cast<double>(p_.images), [&](int64_t first, int64_t last) {
          for (int64_t c = first; c < last; ++c) {
            double* const sums = static_cast<double*>(args.scratch) + c * taps;
            std::fill_n(sums, taps, 0.0);
            for (int64_t n = 0; n < p_.images; ++n) {
              const int64_t plane = n * p_.channels + c;
              run_plane_taps(copy_.fill(x + plane * p_.x.count()), dy + plane * p_.y.count(), sums);
            }
            for (int64_t k = 0; k < taps; ++k) dw[c * taps + k] = static_cast<float>(sums[k]);
          }
        });
  }
  std::string detail() const override { return "planes"; }

 private:
  DepthwisePlanes p_;
  PlaneCopy copy_;
};

KernelPtr make_depthwise_planes(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (request.in(0).count() == 0) return refuse(why, "nothing to sum over");
  if (request.has(3) || request.attrs.s("activation") != "none")
    return refuse(why, "residual or activation");
  if (request.has(2) && !request.in(2).contiguous()) return refuse(why, "strides of the bias");
  const auto p = planes_of(request, request.in(0), request.in(1), request.out(), why);
  if (!p) return nullptr;
  constexpr int64_t kLeastColumns = 12;  // shorter rows leave half of a vector empty: oneDNN wins
  if (p->y.columns < kLeastColumns) return refuse(why, "short rows");
  PlaneCopy copy = copy_of_x(*p);
  if (copy.elements() > kMostElements) return refuse(why, "large planes");
  return std::make_shared<PlaneConvolution>(*p, std::move(copy), p->x, p->y, false, request.has(2));
}

KernelPtr make_depthwise_data_gradient(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (request.in(0).count() == 0) return refuse(why, "nothing to sum over");
  const auto p = planes_of(request, request.out(), request.in(1), request.in(0), why);
  if (!p) return nullptr;
  const Extent pad{p->dilation.rows * (p->kernel.rows - 1) - p->pad.rows,
                   p->dilation.columns * (p->kernel.columns - 1) - p->pad.columns};
  PlaneCopy copy(p->y, p->stride, p->x, p->kernel, {1, 1}, p->dilation, pad);
  if (copy.elements() > kMostElements) return refuse(why, "large planes");
  return std::make_shared<PlaneConvolution>(*p, std::move(copy), p->y, p->x, true, false);
}

KernelPtr make_depthwise_weights_gradient(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (request.in(0).count() == 0 || request.in(1).count() == 0)
    return refuse(why, "nothing to sum over");
  const auto p = planes_of(request, request.in(1), request.out(), request.in(0), why);
  if (!p) return nullptr;
  PlaneCopy copy = copy_of_x(*p);
  if (copy.elements() > kMostElements) return refuse(why, "large planes");
  return std::make_shared<PlaneTaps>(*p, std::move(copy));
}

const KernelFamily kDepthwisePlanes =
    trained_family("depthwise_planes", 8, make_depthwise_planes, make_depthwise_data_gradient,
                   make_depthwise_weights_gradient);

}  // namespace

}  // namespace anymps::cpu
