// SPDX-License-Identifier: Apache-2.0
// 1x1 convolutions and their gradients on channels-first f32 images, as products of the planes
// where they lie: oneDNN's kernels would have every image turned channels last and back.
#include <vector>

#include "drivers/cpu/layers/convolution.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "drivers/cpu/linear/packing/panel_packing.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

using namespace convolution;

constexpr int64_t kMostDepth = 1280;  // deeper panels leave the L2 cache
constexpr int64_t kLeastPlane = 100;  // smaller ones leave much of a panel empty
constexpr double kFlopsInNs = 80;

// A panel that a task packs: it stays in the cache of the thread, which packs many.
float* panel_memory(int64_t count) {
  thread_local std::vector<float> memory;  // NOLINT: kept, so that a run allocates nothing
  if (std::ssize(memory) < count) memory.resize(count);
  return memory.data();
}

struct Pointwise {
  int64_t images = 0, in = 0, out = 0, plane = 0;  // channels of x and of y, pixels of an image

  double flops() const { return 2.0 * static_cast<double>(images * in * out * plane); }
};

// Nothing, with the reason, unless x, w and y are dense and the window is a pixel.
std::optional<Pointwise> pointwise(const KernelRequest& request, const TensorDesc& x,
                                   const TensorDesc& w, const TensorDesc& y, std::string& why) {
  using Result = std::optional<Pointwise>;
  if (!gemm_is_here()) return refuse<Result>(why, "only for AVX2 and AVX-512");
  if (request.attrs.s("layout") != "channels_first") return refuse<Result>(why, "channels last");
  if (request.attrs.i("groups") != 1) return refuse<Result>(why, "groups");
  for (const TensorDesc* t : {&x, &w, &y}) {
    if (t->dtype != DType::kF32) return refuse<Result>(why, "not f32");
    if (!t->contiguous()) return refuse<Result>(why, "strides");
  }
  // With one-pixel windows the two layouts of weights differ by a transpose alone.
  if (request.attrs.s("weights_layout") == "*IO") return refuse<Result>(why, "weights_layout");
  const Window window = resolve_window(request.attrs, spatial_of(x.shape), spatial_of(w.shape));
  for (size_t i = 0; i < window.rank(); ++i)
    if (window.kernel[i] != 1 || window.strides[i] != 1 || window.pads_begin[i] != 0 ||
        window.pads_end[i] != 0)
      return refuse<Result>(why, "the window is not one pixel");
  Pointwise p{x.shape[0], x.shape[1], y.shape[1], 1};
  for (const int64_t extent : spatial_of(x.shape)) p.plane *= extent;
  if (p.plane < kLeastPlane) return refuse<Result>(why, "small planes");
  if (p.in < 1 || p.out < 1 || std::max(p.in, p.out) > kMostDepth)
    return refuse<Result>(why, "channels");
  return p;
}

// y[image][rows, plane] = a[rows, depth] * x[image][depth, plane]
void run_planes(const Pointwise& p, const float* a, int64_t rows, int64_t depth, const float* x,
                float* y) {
  const GemmPanels panels(p.plane);
  const double tasks = static_cast<double>(p.images * panels.count);
  parallel_for(0, p.images * panels.count, p.flops() / tasks / kFlopsInNs,
               [&](int64_t first, int64_t last) {
                 float* const memory = panel_memory(depth * kGemmLanes * kGemmVectors);
                 for (int64_t task = first; task < last; ++task) {
                   const int64_t image = task / panels.count, panel = task % panels.count;
                   const int64_t begin = panels.begin(panel), end = panels.begin(panel + 1);
                   const int64_t width = end - begin;
                   GemmPanel g;
                   g.rows = rows;
                   g.depth = depth;
                   g.columns = std::min(end, p.plane) - begin;
                   const float* const from = x + image * depth * p.plane + begin;
                   for (int64_t k = 0; k < depth; ++k) {
                     std::copy_n(from + k * p.plane, g.columns, memory + k * width);
                     std::fill(memory + k * width + g.columns, memory + (k + 1) * width, 0.0f);
                   }
                   g.a = a;
                   g.a_row = depth;
                   g.b = memory;
                   g.y = y + image * rows * p.plane + begin;
                   g.y_row = p.plane;
                   run_gemm(g);
                 }
               });
}

class PlanesForward final : public Kernel {
 public:
  explicit PlanesForward(const Pointwise& p) : p_(p) {}
  void run(const KernelArgs& args) const override {
    run_planes(p_, static_cast<const float*>(args.inputs[1]), p_.out, p_.in,
               static_cast<const float*>(args.inputs[0]), static_cast<float*>(args.outputs[0]));
  }
  std::string detail() const override { return "planes"; }

 private:
  Pointwise p_;
};

class PlanesDataGradient final : public Kernel {
 public:
  explicit PlanesDataGradient(const Pointwise& p) : p_(p) {}
  size_t scratch_bytes() const override { return sizeof(float) * p_.in * p_.out; }
  void run(const KernelArgs& args) const override {
    auto* const transposed = static_cast<float*>(args.scratch);
    pack_panel({static_cast<const float*>(args.inputs[1]), p_.in, p_.out, 1, p_.in}, p_.out,
               transposed);
    run_planes(p_, transposed, p_.in, p_.out, static_cast<const float*>(args.inputs[0]),
               static_cast<float*>(args.outputs[0]));
  }
  std::string detail() const override { return "planes"; }

 private:
  Pointwise p_;
};

// The pixels are cut into chunks and these into parts, by the shapes alone; each part sums its own
// weights, and the parts are added in their order. The tensor with fewer channels is transposed.
class PlanesWeightsGradient final : public Kernel {
 public:
  explicit PlanesWeightsGradient(const Pointwise& p)
      : p_(p),
        by_x_(p.out < p.in),
        rows_(std::max(p.in, p.out)),
        columns_(std::min(p.in, p.out)),
        in_image_((p.plane + kChunk - 1) / kChunk),
        parts_(std::min(kMostParts, in_image_ * p.images)) {}

  size_t scratch_bytes() const override { return sizeof(float) * rows_ * columns_ * parts_; }

  void run(const KernelArgs& args) const override {
    auto* const sums = static_cast<float*>(args.scratch);
    const auto parts = static_cast<double>(parts_);
    parallel_for(0, parts_, p_.flops() / parts / kFlopsInNs, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part)
        sum_part(args, part, sums + part * rows_ * columns_);
    });
    auto* const y = static_cast<float*>(args.outputs[0]);
    parallel_for(0, rows_, 0.5 * static_cast<double>(columns_ * parts_),
                 [&](int64_t first, int64_t last) {
                   for (int64_t i = first * columns_; i < last * columns_; ++i) {
                     float sum = sums[i];
                     for (int64_t part = 1; part < parts_; ++part)
                       sum += sums[part * rows_ * columns_ + i];
                     y[by_x_ ? i % columns_ * rows_ + i / columns_ : i] = sum;
                   }
                 });
  }
  std::string detail() const override { return "planes"; }

 private:
  static constexpr int64_t kChunk = 256, kMostParts = 8;

  void sum_part(const KernelArgs& args, int64_t part, float* sums) const {
    const GemmPanels panels(columns_);
    const auto* const dy = static_cast<const float*>(args.inputs[0]);
    const auto* const x = static_cast<const float*>(args.inputs[1]);
    float* const memory = panel_memory(kChunk * kGemmLanes * kGemmVectors);
    const int64_t chunks = in_image_ * p_.images;
    const int64_t from = chunks * part / parts_, to = chunks * (part + 1) / parts_;
    for (int64_t chunk = from; chunk < to; ++chunk) {
      const int64_t image = chunk / in_image_, at = chunk % in_image_ * kChunk;
      for (int64_t panel = 0; panel < panels.count; ++panel) {
        const int64_t begin = panels.begin(panel), end = panels.begin(panel + 1);
        GemmPanel g;
        g.rows = rows_;
        g.depth = std::min(kChunk, p_.plane - at);
        g.columns = std::min(end, columns_) - begin;
        g.a = (by_x_ ? x : dy) + image * rows_ * p_.plane + at;
        g.a_row = p_.plane;
        pack_panel({(by_x_ ? dy : x) + (image * columns_ + begin) * p_.plane + at, p_.plane,
                    g.columns, 1, g.depth},
                   end - begin, memory);
        g.b = memory;
        g.y = sums + begin;
        g.y_row = g.residual_row = columns_;
        if (chunk > from) g.residual = g.y;
        run_gemm(g);
      }
    }
  }

  Pointwise p_;
  bool by_x_;  // the sums are [in, out], not [out, in]
  int64_t rows_, columns_, in_image_, parts_;
};

KernelPtr make_planes(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (request.has(2) || request.has(3) || request.attrs.s("activation") != "none")
    return refuse(why, "bias, residual or activation");
  const auto p = pointwise(request, request.in(0), request.in(1), request.out(), why);
  return p ? std::make_shared<PlanesForward>(*p) : nullptr;
}

KernelPtr make_planes_data_gradient(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  const auto p = pointwise(request, request.out(), request.in(1), request.in(0), why);
  return p ? std::make_shared<PlanesDataGradient>(*p) : nullptr;
}

KernelPtr make_planes_weights_gradient(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (request.in(1).count() == 0) return refuse(why, "nothing to sum over");
  const auto p = pointwise(request, request.in(1), request.out(), request.in(0), why);
  return p ? std::make_shared<PlanesWeightsGradient>(*p) : nullptr;
}

const KernelFamily kPlanes = trained_family("planes", 7, make_planes, make_planes_data_gradient,
                                            make_planes_weights_gradient);

}  // namespace

}  // namespace anymps::cpu
