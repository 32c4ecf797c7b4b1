// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/linear/gemm.h"

#include <algorithm>

#include "drivers/cpu/isa.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "drivers/cpu/linear/weight_packing.h"
#include "drivers/cpu/onednn.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kMostRows = 8 * kGemmRows;  // of a task
constexpr double kFlopsInNs = 100;
// Elements of weights that may change, which are packed at each run: with more of them oneDNN,
// which takes half a microsecond to start, is as fast.
constexpr int64_t kMostPackedAtRun = 4096;
constexpr double kColumnsNs = 4;  // to read one element of each of 16 columns from memory

// Deeper panels leave the L2 cache, through which AVX2 goes four times; oneDNN splits them.
int64_t most_depth() { return isa() >= Isa::kAvx512 ? 1280 : 768; }

// What pack_panel does to all panels, without an allocation: for runs.
void pack_now(const Gemm& g, const GemmPanels& panels, const float* from, float* to) {
  for (int64_t i = 0; i < panels.count; ++i) {
    const int64_t begin = panels.begin(i), width = panels.begin(i + 1) - begin;
    const int64_t columns = std::min(width, g.columns - begin);
    const float* plain = from + begin * g.w_column;
    float* packed = to + begin * g.depth;
    if (g.w_depth == 1) {
      pack_transposed(plain, g.w_column, columns, g.depth, width, packed);
      continue;
    }
    for (int64_t p = 0; p < g.depth; ++p, plain += g.w_depth, packed += width) {
      for (int64_t column = 0; column < columns; ++column)
        packed[column] = plain[column * g.w_column];
      std::fill(packed + columns, packed + width, 0.0f);
    }
  }
}

class GemmKernel final : public Kernel {
 public:
  // Without weights: packed at each run.
  GemmKernel(const Gemm& gemm, BufferRef weights)
      : gemm_(gemm), panels_(gemm.columns), weights_(std::move(weights)) {}

  void run(const KernelArgs& args) const override {
    const Gemm& g = gemm_;
    if (weights_) return run(args, static_cast<const float*>(weights_->data()));
    const auto* plain = static_cast<const float*>(args.inputs[1]);
    if (panels_.count == 1 && g.columns % kGemmLanes == 0 && g.w_column == 1 &&
        g.w_depth == g.columns)
      return run(args, plain);  // it lies so
    alignas(64) float packed[kMostPackedAtRun];
    pack_now(g, panels_, plain, packed);
    run(args, packed);
  }
  bool reads(size_t i) const override { return i != 1 || !weights_; }
  std::string detail() const override { return weights_ ? "packed" : "packed at each run"; }

 private:
  void run(const KernelArgs& args, const float* weights) const {
    const Gemm& g = gemm_;
    const int threads = current_threads();
    int64_t rows = kMostRows;
    while (rows > kGemmRows && (g.rows + rows - 1) / rows * panels_.count < 4 * threads) rows /= 2;
    rows = (rows + kGemmRows - 1) / kGemmRows * kGemmRows;
    const int64_t chunks = (g.rows + rows - 1) / rows;
    const double ns = 2.0 * static_cast<double>(std::min(rows, g.rows) * g.depth * g.columns) /
                      static_cast<double>(panels_.count) / kFlopsInNs;
    // What is smaller is read again and again: it stays in a core's cache. Tasks that follow each
    // other, which one thread mostly does, share a part of the other.
    const bool by_panels = g.columns > g.rows;
    parallel_for(0, chunks * panels_.count, ns, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t chunk = by_panels ? task % chunks : task / panels_.count;
        run_task(args, weights, chunk * rows, rows,
                 by_panels ? task / chunks : task % panels_.count);
      }
    });
  }

  void run_task(const KernelArgs& args, const float* weights, int64_t row, int64_t rows,
                int64_t panel) const {
    const Gemm& g = gemm_;
    const int64_t begin = panels_.begin(panel);
    const auto input = [&](size_t i) { return static_cast<const float*>(args.inputs[i]); };
    GemmPanel p;
    p.rows = std::min(rows, g.rows - row);
    p.depth = g.depth;
    p.columns = std::min(panels_.begin(panel + 1), g.columns) - begin;
    p.a = input(0) + row * g.x_row;
    p.a_row = g.x_row;
    p.b = weights + begin * g.depth;
    if (g.bias) p.bias = input(*g.bias) + begin;
    if (g.residual) p.residual = input(*g.residual) + row * g.y_row + begin;
    p.residual_row = g.y_row;
    p.y = static_cast<float*>(args.outputs[0]) + row * g.y_row + begin;
    p.y_row = g.y_row;
    p.activation = g.activation;
    run_gemm(p);
  }

  Gemm gemm_;
  GemmPanels panels_;
  BufferRef weights_;
};

// One row reads each weight once: packing would cost more than it gives. So they are read in place,
// in the mapped file.
class GemvKernel final : public Kernel {
 public:
  explicit GemvKernel(const Gemm& gemm) : gemm_(gemm) {}

  void run(const KernelArgs& args) const override {
    const Gemm& g = gemm_;
    const int64_t groups = (g.columns + kGemmLanes - 1) / kGemmLanes;
    const auto input = [&](size_t i) { return static_cast<const float*>(args.inputs[i]); };
    parallel_for(0, groups, static_cast<double>(g.depth) * kColumnsNs,
                 [&](int64_t first, int64_t last) {
                   const int64_t begin = first * kGemmLanes;
                   GemmPanel p;
                   p.rows = 1;
                   p.depth = g.depth;
                   p.columns = std::min(last * kGemmLanes, g.columns) - begin;
                   p.a = input(0);
                   p.b = input(1) + begin * g.w_column;
                   if (g.bias) p.bias = input(*g.bias) + begin;
                   if (g.residual) p.residual = input(*g.residual) + begin;
                   p.y = static_cast<float*>(args.outputs[0]) + begin;
                   p.activation = g.activation;
                   run_gemv(p, g.w_column);
                 });
  }
  std::string detail() const override { return "in place"; }

 private:
  Gemm gemm_;
};

}  // namespace

KernelPtr make_gemm(const KernelRequest& request, const Gemm& g, std::string& why) {
  if (!gemm_is_here()) return refuse(why, "only for AVX2 and AVX-512");
  const Activation activation = g.activation.kind;
  if (activation == Activation::kGelu || activation == Activation::kGeluTanh)
    return refuse(why, "activation");  // by 2 to 4 % in whole encoders
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (request.has(i) && request.in(i).dtype != DType::kF32)
      return refuse(why, fmt::format("dtype {}", name(request.in(i).dtype)));
  if (g.rows == 1 && g.w_depth == 1) return std::make_shared<GemvKernel>(g);
  if (g.depth > most_depth() || g.depth < 1)
    return refuse(why, fmt::format("sums of {} products", g.depth));
  const GemmPanels panels(g.columns);
  if (!request.constant(1) || !request.packed) {
    if (g.packs_at_run && panels.vectors * kGemmLanes * g.depth <= kMostPackedAtRun)
      return std::make_shared<GemmKernel>(g, nullptr);
    return refuse(why, "the weights are not constant");
  }
  const std::string layout =
      fmt::format("gemm {} {} {} {}", g.depth, g.columns, g.w_depth, g.w_column);
  const size_t bytes = sizeof(float) * static_cast<size_t>(panels.vectors * kGemmLanes * g.depth);
  BufferRef weights = request.packed->get(
      *request.constant(1), layout, bytes, [&](const std::byte* plain, void* packed) {
        const auto* from = reinterpret_cast<const float*>(plain);
        parallel_for(0, panels.count, static_cast<double>(g.depth) * 32,
                     [&](int64_t first, int64_t last) {
                       for (int64_t i = first; i < last; ++i) {
                         const int64_t begin = panels.begin(i), end = panels.begin(i + 1);
                         pack_panel(from + begin * g.w_column, g.w_column,
                                    std::min(end, g.columns) - begin, g.w_depth, g.depth,
                                    end - begin, static_cast<float*>(packed) + begin * g.depth);
                       }
                     });
      });
  return std::make_shared<GemmKernel>(g, std::move(weights));
}

}  // namespace anymps::cpu
