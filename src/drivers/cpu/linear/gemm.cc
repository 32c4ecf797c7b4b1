// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/linear/gemm.h"

#include <algorithm>
#include <array>

#include "drivers/cpu/common/row_kernel.h"
#include "drivers/cpu/isa.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "drivers/cpu/linear/packing/panel_packing.h"
#include "drivers/cpu/onednn.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"
#include "memory/pages.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kMostRows = 8 * kGemmRows;                 // of a chunk
constexpr int64_t kMoreRows = 4 * kMostRows, kShallow = 40;  // with so few summands for each
constexpr double kFlopsInNs = 100;
// Elements of weights that may change, which are packed at each run: with more of them oneDNN,
// which takes half a microsecond to start, is as fast.
constexpr int64_t kMostPackedAtRun = 4096;
constexpr double kColumnsNs = 4;  // to read one element of each of 16 columns from memory

// Deeper panels leave the L2 cache, through which AVX2 goes four times. They are cut into equal
// parts.
int64_t depth_of_part(int64_t depth) {
  const int64_t most = isa() >= Isa::kAvx512 ? 1280 : 768, parts = (depth + most - 1) / most;
  return (depth + parts - 1) / parts;
}

// Panels [first, last); factors of the columns, or null.
void pack_panels(const Gemm& g, const GemmPanels& panels, int64_t first, int64_t last,
                 const float* from, const double* factors, float* to) {
  for (int64_t i = first; i < last; ++i) {
    const int64_t begin = panels.begin(i), width = panels.begin(i + 1) - begin;
    PlainPanel plain;
    plain.from = from + begin * g.w_column;
    plain.lane_stride = g.w_column;
    plain.lanes = std::min(width, g.columns - begin);
    plain.depth_stride = g.w_depth;
    plain.depth = g.depth;
    plain.factors = factors ? factors + begin : nullptr;
    float* const packed = to + begin * g.depth;
    map_for_writing(packed, sizeof(float) * static_cast<size_t>(width * g.depth));
    pack_panel(plain, width, packed);
  }
}

class GemmKernel final : public RowKernel {
 public:
  // Without weights: packed at each run.
  GemmKernel(const Gemm& gemm, BufferRef weights)
      : gemm_(gemm),
        panels_(gemm.columns),
        depth_(depth_of_part(gemm.depth)),
        weights_(std::move(weights)) {
    if (gemm_.run == 0) gemm_.run = gemm_.rows;
  }

  void run(const KernelArgs& args) const override {
    const Gemm& g = gemm_;
    if (weights_) return run(args, static_cast<const float*>(weights_->data()));
    const auto* plain = static_cast<const float*>(args.inputs[1]);
    if (panels_.count == 1 && g.columns % kGemmLanes == 0 && g.w_column == 1 &&
        g.w_depth == g.columns)
      return run(args, plain);  // it lies so
    alignas(64) float packed[kMostPackedAtRun];
    pack_panels(g, panels_, 0, panels_.count, plain, nullptr, packed);
    run(args, packed);
  }
  bool reads(size_t i) const override { return i != 1 || !weights_; }
  std::string detail() const override { return weights_ ? "packed" : "packed at each run"; }

  RowShape result_rows() const override { return lines_of(gemm_.y_row); }
  RowShape input_rows() const override { return lines_of(gemm_.x_row); }
  double flops() const override {
    return 2.0 * static_cast<double>(gemm_.rows * gemm_.depth * gemm_.columns);
  }
  RowRange under(RowRange rows) const override { return rows; }
  void run_rows(const KernelArgs& args, int64_t image, RowRange lines, const float* x,
                int64_t x_first, float* y) const override {
    const Gemm& g = gemm_;
    const int64_t pixels = g.rows / (g.images * g.lines), count = lines.count() * pixels;
    const int64_t before = (image * g.lines + lines.first) * pixels;
    const auto from = [&](size_t i, int64_t row) {
      return const_cast<float*>(static_cast<const float*>(args.inputs[i]) + before * row);
    };
    std::array<void*, 4> inputs{};
    inputs[0] =
        x ? const_cast<float*>(x + (lines.first - x_first) * pixels * g.x_row) : from(0, g.x_row);
    if (g.bias) inputs[*g.bias] = args.inputs[*g.bias];
    if (g.residual) inputs[*g.residual] = from(*g.residual, g.y_row);
    void* output = y;
    const KernelArgs own{inputs.data(), &output};
    const auto* weights = static_cast<const float*>(weights_->data());
    const int64_t chunk = g.depth <= kShallow ? kMoreRows : kMostRows;
    for (int64_t row = 0; row < count; row += chunk)
      for (int64_t panel = 0; panel < panels_.count; ++panel)
        run_panel(own, weights, panel, row, std::min(row + chunk, count), std::nullopt);
  }

 private:
  RowShape lines_of(int64_t row) const {
    const Gemm& g = gemm_;
    if (g.images == 0 || g.lines == 0 || !weights_) return {};
    return {g.images, g.lines, g.rows / (g.images * g.lines) * row};
  }

  // What is smaller, rows or weights, is read again and again: it stays in a core's cache. Either
  // all rows go through one panel after the other, or chunks of rows through all panels.
  struct Cut {
    bool by_panels;
    int64_t rows, count;  // rows that stay together, and how many such parts there are
    int64_t ranges;       // of parts of panels, which threads share out
  };

  Cut cut_for(int threads) const {
    const Gemm& g = gemm_;
    Cut cut{g.columns > g.rows || depth_ < g.depth, kGemmRows, 0, 1};
    if (!cut.by_panels) {
      cut.rows = g.depth <= kShallow ? kMoreRows : kMostRows;
      while (cut.rows > kGemmRows && count(cut) * panels_.count < 4 * threads) cut.rows /= 2;
      cut.rows = (cut.rows + kGemmRows - 1) / kGemmRows * kGemmRows;
    }
    if (g.run < g.rows) cut.rows = std::max<int64_t>(cut.rows / g.run, 1) * g.run;
    cut.count = count(cut);
    if (threads > 1) cut.ranges = std::min<int64_t>(cut.count * panels_.count, 4 * threads);
    return cut;
  }
  int64_t count(const Cut& cut) const { return (gemm_.rows + cut.rows - 1) / cut.rows; }

  void run(const KernelArgs& args, const float* weights) const {
    const Gemm& g = gemm_;
    const int threads = current_threads();
    const Cut cut = cut_for(threads);
    const double ns = 2.0 * static_cast<double>(g.rows * g.depth * g.columns) /
                      static_cast<double>(cut.ranges) / kFlopsInNs;
    const int64_t parts = cut.count * panels_.count;
    const auto begin = [&](int64_t range) { return parts * range / cut.ranges; };
    parallel_for(0, cut.ranges, ns, [&](int64_t first, int64_t last) {
      for (int64_t range = first; range < last; ++range) {
        if (!cut.by_panels) {
          for (int64_t part = begin(range); part < begin(range + 1); ++part)
            run_part_of_chunk(args, weights, cut, part);
          continue;
        }
        // Threads take turns: this one most likely gets the range after those of the others.
        const int64_t after = range + 1 < last ? range + 1 : range + threads;
        std::optional<int64_t> next;
        if (after < cut.ranges) next = begin(after) / cut.count;
        run_panels(args, weights, cut, begin(range), begin(range + 1), next);
      }
    });
  }

  // Weights are read from memory while the first chunk goes through the panels.
  void run_part_of_chunk(const KernelArgs& args, const float* weights, const Cut& cut,
                         int64_t part) const {
    std::optional<int64_t> next;
    if (part + 1 < panels_.count) next = part + 1;
    const int64_t row = part / panels_.count * cut.rows;
    run_panel(args, weights, part % panels_.count, row, std::min(row + cut.rows, gemm_.rows), next);
  }

  void run_panels(const KernelArgs& args, const float* weights, const Cut& cut, int64_t first,
                  int64_t last, std::optional<int64_t> next) const {
    for (int64_t end; first < last; first = end) {
      const int64_t panel = first / cut.count, before = panel * cut.count;
      end = std::min(last, before + cut.count);
      run_panel(args, weights, panel, (first - before) * cut.rows,
                std::min((end - before) * cut.rows, gemm_.rows), end < last ? panel + 1 : next);
    }
  }

  // Rows times a panel, while the next panel is asked for. A part of the rows goes through all of
  // the panel's depth: its sums stay in the cache.
  void run_panel(const KernelArgs& args, const float* weights, int64_t panel, int64_t row,
                 int64_t end, std::optional<int64_t> next) const {
    const Gemm& g = gemm_;
    const int64_t begin = panels_.begin(panel), width = panels_.begin(panel + 1) - begin;
    const int64_t most = std::max(kMoreRows / g.run, int64_t{1}) * std::min(g.run, kMoreRows);
    Product p;
    p.begin = begin;
    p.panel.columns = std::min(begin + width, g.columns) - begin;
    for (int64_t first = row; first < end; first += most) {
      p.first = first;
      p.end = std::min(first + most, end);
      for (p.from = 0; p.from < g.depth; p.from += depth_) {
        p.panel.depth = std::min(depth_, g.depth - p.from);
        p.panel.b = weights + begin * g.depth + p.from * width;
        const int64_t left = g.depth - p.from - p.panel.depth;
        if (left > 0) {
          p.ahead = p.panel.b + p.panel.depth * width;
          p.ahead_count = std::min(depth_, left) * width;
          p.asking_first = first;
          p.asking_end = p.end;
        } else {
          p.ahead = next ? weights + panels_.begin(*next) * g.depth : nullptr;
          p.ahead_count = depth_ * width;
          p.asking_first = row;
          p.asking_end = end;
        }
        run_rows(args, p);
      }
    }
  }

  struct Product {
    GemmPanel panel;
    int64_t begin = 0, from = 0;  // its first column, and the first of its summands
    int64_t first = 0, end = 0;   // rows
    const float* ahead = nullptr;
    int64_t ahead_count = 0;
    int64_t asking_first = 0, asking_end = 0;  // the rows that ask for it, each for a part
  };

  // The first summands begin with the bias; the others are added to what is in y.
  void run_rows(const KernelArgs& args, const Product& product) const {
    const Gemm& g = gemm_;
    const auto input = [&](size_t i) { return static_cast<const float*>(args.inputs[i]); };
    const int64_t asking = product.asking_end - product.asking_first;
    int64_t row = product.first;
    const int64_t end = product.end;
    for (int64_t rows; row < end; row += rows) {
      const bool dense = g.run == g.rows;  // divisions take as long as a small tile
      const int64_t line = dense ? 0 : row / g.run, at = dense ? row : row % g.run;
      rows = std::min(end - row, g.run - at);
      GemmPanel p = product.panel;
      p.rows = rows;
      p.a = input(0) + at * g.x_row + product.from;
      if (line > 0) p.a += line / g.runs * g.x_image + line % g.runs * g.x_run;
      p.a_row = g.x_row;
      p.y = static_cast<float*>(args.outputs[0]) + row * g.y_row + product.begin;
      p.y_row = p.residual_row = g.y_row;
      if (product.from) {
        p.residual = p.y;
      } else {
        if (g.bias) p.bias = input(*g.bias) + product.begin;
        if (g.residual) p.residual = input(*g.residual) + row * g.y_row + product.begin;
      }
      if (product.from + p.depth == g.depth) p.activation = g.activation;
      const auto part = [&](int64_t r) {
        return product.ahead_count * (r - product.asking_first) / asking;
      };
      if (product.ahead) {
        p.next = product.ahead + part(row);
        p.next_count = part(row + rows) - part(row);
      }
      run_gemm(p);
    }
  }

  Gemm gemm_;
  GemmPanels panels_;
  int64_t depth_;  // summands that are multiplied at once
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
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (request.has(i) && request.in(i).dtype != DType::kF32)
      return refuse(why, fmt::format("dtype {}", name(request.in(i).dtype)));
  if (g.rows == 1 && g.w_depth == 1) return std::make_shared<GemvKernel>(g);
  if (g.depth < 1) return refuse(why, "nothing to sum over");
  const GemmPanels panels(g.columns);
  if (!request.constant(1) || !request.packed) {
    if (g.packs_at_run && panels.vectors * kGemmLanes * g.depth <= kMostPackedAtRun)
      return std::make_shared<GemmKernel>(g, nullptr);
    return refuse(why, "the weights are not constant");
  }
  const std::string layout =
      fmt::format("gemm {} {} {} {}", g.depth, g.columns, g.w_depth, g.w_column);
  const size_t bytes = sizeof(float) * static_cast<size_t>(panels.vectors * kGemmLanes * g.depth);
  BufferRef weights = request.packed->get_scaled(
      *request.constant(1), static_cast<size_t>(g.columns), layout, bytes,
      [&](const std::byte* plain, const double* factors, void* packed) {
        parallel_for(0, panels.count, static_cast<double>(g.depth) * 32,
                     [&](int64_t first, int64_t last) {
                       pack_panels(g, panels, first, last, reinterpret_cast<const float*>(plain),
                                   factors, static_cast<float*>(packed));
                     });
      });
  return std::make_shared<GemmKernel>(g, std::move(weights));
}

}  // namespace anymps::cpu
