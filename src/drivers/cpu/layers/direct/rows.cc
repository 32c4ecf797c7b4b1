// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/layers/direct/rows.h"

#include <algorithm>
#include <array>

#include "drivers/cpu/common/copy.h"
#include "drivers/cpu/elementwise/tile_ops.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"

namespace anymps::cpu::direct {

namespace {

constexpr int64_t kMostSegments = 128;
constexpr double kFlopsInNs = 80;
constexpr int64_t kTasks = 32;       // rows are cut until there are that many
constexpr int64_t kPartPixels = 56;  // whole tiles of 7 and of 8 pixels
// Weights up to this many bytes stay in the L2 cache while all of a row's panels are made.
constexpr size_t kFewWeights = size_t{256} << 10;

struct Panel {
  size_t phase = 0;
  int64_t column = 0, columns = 0, width = 0;
  int64_t weights = 0;  // where its weights begin
};

class RowsKernel final : public Kernel {
 public:
  RowsKernel(const KernelRequest& request, Rows rows)
      : rows_(std::move(rows)), has_bias_(request.has(2)), has_residual_(request.has(3)) {
    if (!tile_has(rows_.activation.kind)) {
      later_ = find_tile_op(request.attrs.s("activation"), DType::kF32);
      numbers_ = {rows_.activation.alpha, rows_.activation.beta};
      rows_.activation = {};
    }
    const TileShape shape = tile_shape();
    lanes_ = shape.lanes;
    spread_ = spread_of(rows_);
    for (size_t phase = 0; phase < rows_.phases.size(); ++phase) {
      const int64_t columns = rows_.phases[phase].columns;
      const Panels cut(shape, columns);
      for (int64_t i = 0; i < cut.count; ++i) {
        Panel panel;
        panel.phase = phase;
        panel.column = cut.begin(i);
        panel.width = cut.begin(i + 1) - panel.column;
        panel.columns = std::min(panel.width, columns - panel.column);
        panel.weights = weights_;
        weights_ += rows_.kernel_rows * rows_.taps * tap_size(panel);
        panels_.push_back(panel);
      }
    }
    widen_bias_ = has_bias_ && rows_.phases[0].columns > rows_.channels;
    if (widen_bias_) bias_bytes_ = aligned(rows_.phases[0].columns);
    if (const TensorDesc& x = request.in(0); rows_.copies_x) {
      copy_.emplace(sizeof(float), x.shape, contiguous_strides(x.shape), x.strides);
      x_bytes_ = aligned(x.count());
    }
    cut_rows();
    for (const Panel& panel : panels_)
      for (const Span& span : rows_.phases[panel.phase].spans)
        flops_ += 2.0 * static_cast<double>(span.pixels * span.taps * rows_.depth * panel.columns);
  }

  // Under a pixel, at most.
  int64_t segments() const { return rows_.kernel_rows * (taps_are_one() ? 1 : rows_.taps); }

  void pack(const KernelRequest& request, const std::string& name) {
    const Rows& r = rows_;
    packed_ = request.packed->get(
        *request.constant(1), name, static_cast<size_t>(weights_) * sizeof(float),
        [&](const std::byte* plain, void* packed) {
          const auto* from = reinterpret_cast<const float*>(plain);
          auto* to = static_cast<float*>(packed);
          std::fill_n(to, weights_, 0.0f);
          for (const Panel& panel : panels_)
            for (int64_t row = 0; row < r.kernel_rows; ++row)
              for (int64_t tap = 0; tap < r.taps; ++tap)
                for (int64_t i = 0; i < panel.columns; ++i) {
                  const auto at = r.weight(panel.phase, panel.column + i, row, tap);
                  if (!at) continue;
                  float* start = to + panel.weights + (row * r.taps + tap) * tap_size(panel);
                  for (int64_t k = 0; k < r.depth; ++k)
                    start[place_of(k, i, panel)] = from[*at + k * r.weight_step];
                }
        });
    rows_.weight = nullptr;
  }

  void run(const KernelArgs& args) const override {
    const int64_t panels = std::ssize(panels_), rows = rows_.batch * rows_.out_rows;
    const bool by_rows = static_cast<size_t>(weights_) * sizeof(float) <= kFewWeights;
    const double ns = flops_ / static_cast<double>(panels * parts_) * mean_rows() / kFlopsInNs;
    if (widen_bias_) repeat_bias(args);
    if (copy_) copy_->run(static_cast<char*>(args.scratch) + bias_bytes_, args.inputs[0]);
    parallel_for(0, panels * rows * parts_, ns, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t i = task / parts_, part = task % parts_;
        const int64_t panel = by_rows ? i % panels : i / rows;
        const int64_t row = by_rows ? i / panels : i % rows;
        // Rows that meet the same weights follow each other, of all images, unless all weights are
        // at hand: then neighbours do, which read the same pixels.
        if (by_rows)
          run_row(args, panels_[panel], row / rows_.out_rows, row % rows_.out_rows, part);
        else
          run_row(args, panels_[panel], row % rows_.batch, rows_.order[row / rows_.batch], part);
      }
    });
    if (later_) activate(args);
  }
  bool reads(size_t i) const override { return i != 1; }
  size_t scratch_bytes() const override { return bias_bytes_ + x_bytes_; }
  std::string detail() const override {
    return fmt::format("direct, {} columns", rows_.phases[0].columns);
  }

 private:
  static size_t aligned(int64_t floats) {
    return (static_cast<size_t>(floats) * sizeof(float) + 63) / 64 * 64;
  }
  // Whether the taps of a row lie side by side, in x and in the weights.
  bool taps_are_one() const { return rows_.tap_step == rows_.depth && spread_ == 0; }
  // See Tile; 0 where columns fill most of a vector, or the depth does not.
  int64_t spread_of(const Rows& rows) const {
    if (rows.phases.size() != 1 || rows.depth * 2 <= lanes_) return 0;
    for (const int64_t spread : {2, 4, 8})
      if (rows.phases[0].columns <= spread) return 2 * spread <= lanes_ ? spread : 0;
    return 0;
  }
  // The packed weights of a tap, and where among them that of column i for element k is.
  int64_t tap_size(const Panel& panel) const {
    if (spread_ == 0) return rows_.depth * panel.width;
    return (rows_.depth + lanes_ - 1) / lanes_ * spread_ * lanes_;
  }
  int64_t place_of(int64_t k, int64_t i, const Panel& panel) const {
    if (spread_ == 0) return k * panel.width + i;
    const int64_t part = k % lanes_ / spread_ * spread_;
    return (k / lanes_ * spread_ + k % spread_) * lanes_ + part + i;
  }
  // Few rows, as a signal's only one, are cut: else some threads have nothing to do at the end.
  void cut_rows() {
    const int64_t tasks = std::ssize(panels_) * rows_.batch * rows_.out_rows;
    if (tasks >= kTasks) return;
    const int64_t wanted = (kTasks + tasks - 1) / tasks;
    for (Phase& phase : rows_.phases) {
      int64_t pixels = 0;
      for (const Span& span : phase.spans) pixels += span.pixels;
      const int64_t size = (pixels / wanted + kPartPixels) / kPartPixels * kPartPixels;
      std::vector<Span> spans;
      int64_t part = 0, room = size;
      for (Span span : phase.spans)
        while (span.pixels > 0) {
          if (room < kPartPixels) ++part, room = size;
          Span& piece = spans.emplace_back(span);
          if (span.pixels > room) piece.pixels = room / kPartPixels * kPartPixels;
          piece.part = part;
          room -= piece.pixels;
          span.pixels -= piece.pixels;
          span.x += piece.pixels * rows_.x_step;
          span.y += piece.pixels * rows_.y_step;
        }
      phase.spans = std::move(spans);
      parts_ = std::max(parts_, part + 1);
    }
  }
  double mean_rows() const {
    size_t count = 0;
    for (const auto& under : rows_.under) count += under.size();
    return static_cast<double>(count) / static_cast<double>(rows_.under.size());
  }
  // What tiles cannot do, in a second pass.
  void activate(const KernelArgs& args) const {
    parallel_for(0, rows_.batch * rows_.out_rows, later_->ns * static_cast<double>(rows_.y_row),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     float* y = static_cast<float*>(args.outputs[0]) + row * rows_.y_row;
                     later_->run({{y}, y, static_cast<size_t>(rows_.y_row), numbers_.data()});
                   }
                 });
  }
  // Columns that are the same channels in several pixels.
  void repeat_bias(const KernelArgs& args) const {
    const auto* bias = static_cast<const float*>(args.inputs[2]);
    auto* to = static_cast<float*>(args.scratch);
    for (int64_t i = 0; i < rows_.phases[0].columns; ++i) to[i] = bias[i % rows_.channels];
  }

  void run_row(const KernelArgs& args, const Panel& panel, int64_t image, int64_t row,
               int64_t part) const {
    const Rows& r = rows_;
    const Phase& phase = r.phases[panel.phase];
    const void* from = copy_ ? static_cast<char*>(args.scratch) + bias_bytes_ : args.inputs[0];
    const float* x = static_cast<const float*>(from) + image * r.x_image;
    const int64_t start = (image * r.out_rows + row) * r.y_row;
    const float* weights = static_cast<const float*>(packed_->data()) + panel.weights;
    const bool dense = taps_are_one();
    Segment segments[kMostSegments];
    Tile tile;
    tile.segments = segments;
    tile.x_step = r.x_step;
    tile.y_step = r.y_step;
    tile.activation = r.activation;
    tile.spread = spread_;
    if (has_bias_)
      tile.bias = static_cast<const float*>(widen_bias_ ? args.scratch : args.inputs[2]) +
                  (widen_bias_ ? 0 : phase.channel) + panel.column;
    for (const Span& span : phase.spans) {
      if (span.part != part) continue;
      const int64_t begin = std::max(span.begin, panel.column),
                    end = std::min(span.end, panel.column + panel.columns);
      if (begin >= end) continue;
      tile.count = 0;
      if (span.taps > 0)
        for (const Rows::Under& under : r.under[row]) {
          const float* at = x + under.x + span.x;
          const float* w = weights + (under.kernel_row * r.taps + span.first) * tap_size(panel);
          if (dense) {
            segments[tile.count++] = {at, w, span.taps * r.depth};
          } else {
            for (int64_t tap = 0; tap < span.taps; ++tap)
              segments[tile.count++] = {at + tap * r.tap_step, w + tap * tap_size(panel), r.depth};
          }
        }
      tile.pixels = span.pixels;
      tile.columns = panel.columns;
      const int64_t at = start + span.y + panel.column;
      float* y = static_cast<float*>(args.outputs[0]) + at;
      const float* residual =
          has_residual_ ? static_cast<const float*>(args.inputs[3]) + at : nullptr;
      if (end - begin == panel.columns) {
        tile.y = y;
        tile.residual = residual;
        run_tile(tile);
      } else {
        run_part(tile, residual, begin - panel.column, end - panel.column, y);
      }
    }
  }

  // One pixel of which some columns alone are in the row.
  static void run_part(Tile tile, const float* residual, int64_t begin, int64_t end, float* y) {
    float result[64], add[64] = {};
    if (residual) std::copy(residual + begin, residual + end, add + begin);
    tile.residual = residual ? add : nullptr;
    tile.y = result;
    run_tile(tile);
    std::copy(result + begin, result + end, y + begin);
  }

  Rows rows_;
  std::vector<Panel> panels_;
  int64_t lanes_ = 0, spread_ = 0;
  int64_t weights_ = 0;  // floats, packed
  int64_t parts_ = 1;    // of a row
  double flops_ = 0;     // of a row, for each row of the kernel
  bool has_bias_, has_residual_, widen_bias_ = false;
  const TileOp* later_ = nullptr;  // an activation that tiles do not have
  std::array<double, kTileParams> numbers_{};
  std::optional<StridedCopy> copy_;
  size_t bias_bytes_ = 0, x_bytes_ = 0;  // of the scratch memory
  BufferRef packed_;
};

}  // namespace

bool can_go_by_rows(const KernelRequest& request, std::string& why) {
  if (tile_shape().lanes == 0) return refuse<bool>(why, "only for AVX2 and AVX-512");
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (!request.has(i)) continue;
    if (request.in(i).dtype != DType::kF32)
      return refuse<bool>(why, fmt::format("dtype {}", name(request.in(i).dtype)));
    if (i != 0 && !request.in(i).contiguous())
      return refuse<bool>(why, fmt::format("strides of input {}", i));
    if (request.in(i).count() == 0) return refuse<bool>(why, fmt::format("input {} is empty", i));
  }
  if (request.attrs.s("layout") != "channels_last")
    return refuse<bool>(why, "channels are not last");
  if (!request.out().contiguous()) return refuse<bool>(why, "strides of y");
  if (!request.constant(1) || !request.packed)
    return refuse<bool>(why, "the weights are not constant");
  if (!tile_has(tile_activation(request.attrs, "alpha", "beta").kind) &&
      !find_tile_op(request.attrs.s("activation"), DType::kF32))
    return refuse<bool>(why, "activation");
  return true;
}

KernelPtr make_rows_kernel(const KernelRequest& request, Rows rows, const std::string& name,
                           std::string& why) {
  const auto kernel = std::make_shared<RowsKernel>(request, std::move(rows));
  if (kernel->segments() > kMostSegments)
    return refuse(why, fmt::format("{} pieces of a window", kernel->segments()));
  kernel->pack(request, name);
  return kernel;
}

}  // namespace anymps::cpu::direct
