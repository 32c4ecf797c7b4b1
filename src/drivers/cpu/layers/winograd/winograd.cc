// SPDX-License-Identifier: Apache-2.0
// 3x3 convolutions with a quarter of the products, channels last. A task transforms the inputs of a
// block of tiles, multiplies them by panels of weights, one product for each point of the tiles,
// and transforms the sums back, all in the core's cache.
#include "drivers/cpu/layers/winograd/winograd.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "drivers/cpu/layers/convolution.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "drivers/cpu/threads.h"
#include "drivers/kernel_ways.h"
#include "drivers/packed_weights.h"

namespace anymps::cpu {

namespace {

using convolution::plain_weights;
using convolution::spatial_of;

constexpr int64_t kMostDepth = 1280;       // of one product; deeper panels leave the L2 cache
constexpr int64_t kLateBytes = 256 << 10;  // of weights that are transformed late, at a time
constexpr int64_t kLine = 16;              // floats in a cache line
constexpr int64_t kMostChannels = 4096;    // of x: a task's inputs would be a large part of memory
constexpr double kFlopsInNs = 100;

// A task's inputs, sums and late weights: they stay in the cache of the thread, which has many
// tasks.
float* task_memory(int64_t count) {
  thread_local std::vector<float> memory;  // NOLINT: kept, so that a run allocates nothing
  if (std::ssize(memory) < count + kLine) memory.resize(count + kLine);
  return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
}

// How a run is cut into tasks: blocks of tiles times groups of panels.
struct Cut {
  int64_t block, blocks, groups;
};

class WinogradKernel final : public Kernel {
 public:
  WinogradKernel(const WinogradTiles& tiles, WinogradWeights plain, BufferRef packed,
                 const KernelRequest& request)
      : t_(tiles),
        panels_(tiles.out_channels),
        plain_(std::move(plain)),
        packed_(std::move(packed)),
        activation_(tile_activation(request.attrs, "alpha", "beta")),
        has_bias_(request.has(2)),
        has_residual_(request.has(3)),
        row_(in_whole_vectors(tiles.in_channels)),
        block_(most_tiles(tiles)),
        step_(std::min(tiles.in_channels, tiles.late ? kLateBytes / (t_.points() * kWidestPanel *
                                                                     int64_t{sizeof(float)})
                                                     : kMostDepth)) {}

  void run(const KernelArgs& args) const override {
    const Cut cut = cut_for(current_threads());
    const double ns =
        2.0 * static_cast<double>(t_.count() * t_.points() * t_.in_channels * t_.out_channels) /
        static_cast<double>(cut.blocks * cut.groups) / kFlopsInNs;
    parallel_for(0, cut.blocks * cut.groups, ns, [&](int64_t first, int64_t last) {
      float* const inputs =
          task_memory(t_.points() * (input_plane(cut) + sums_plane(cut) + late_plane()));
      int64_t there = -1;
      for (int64_t task = first; task < last; ++task) {
        const int64_t block = task / cut.groups, group = task % cut.groups;
        if (block != there) transform(args, cut, block, inputs);
        there = block;
        for (int64_t panel = group * panels_.count / cut.groups;
             panel < (group + 1) * panels_.count / cut.groups; ++panel)
          multiply(args, cut, block, inputs, panel);
      }
    });
  }
  bool reads(size_t i) const override { return i != 1; }
  std::string detail() const override { return describe_tiles(t_); }

 private:
  // Tasks that share a block are cheaper than smaller blocks, which read the weights more often.
  Cut cut_for(int threads) const {
    Cut cut{block_, 0, 1};
    const auto blocks = [&] { return (t_.count() + cut.block - 1) / cut.block; };
    if (threads > 1) {
      cut.groups = std::clamp((4 * threads + blocks() - 1) / blocks(), int64_t{1}, panels_.count);
      while (cut.block > kGemmRows && blocks() * cut.groups < 2 * threads)
        cut.block = (cut.block / 2 + kGemmRows - 1) / kGemmRows * kGemmRows;
    }
    cut.blocks = blocks();
    return cut;
  }
  // A cache line more than a power of two, which would bring all points to the same sets.
  int64_t input_plane(const Cut& cut) const { return cut.block * row_ + kLine; }
  static int64_t sums_plane(const Cut& cut) { return cut.block * kWidestPanel + kLine; }
  int64_t late_plane() const { return t_.late ? step_ * kWidestPanel + kLine : 0; }
  int64_t weights_of_column() const { return t_.packed_weights() * t_.in_channels; }
  const float* weights() const { return static_cast<const float*>(packed_->data()); }
  int64_t tiles_in(const Cut& cut, int64_t block) const {
    return std::min(cut.block, t_.count() - block * cut.block);
  }

  void transform(const KernelArgs& args, const Cut& cut, int64_t block, float* inputs) const {
    const float* zeros = weights() + panels_.vectors * kGemmLanes * weights_of_column();
    winograd_input(
        t_, block * cut.block, tiles_in(cut, block),
        {static_cast<const float*>(args.inputs[0]), zeros, inputs, row_, input_plane(cut)});
  }

  void multiply(const KernelArgs& args, const Cut& cut, int64_t block, float* inputs,
                int64_t panel) const {
    const int64_t begin = panels_.begin(panel), width = panels_.begin(panel + 1) - begin;
    const int64_t tile = block * cut.block;
    float* const sums = inputs + t_.points() * input_plane(cut);
    GemmPanel g;
    g.rows = tiles_in(cut, block);
    g.columns = g.y_row = g.residual_row = width;
    g.a_row = row_;
    const float* const own = weights() + begin * weights_of_column();
    float* const late = sums + t_.points() * sums_plane(cut);
    for (int64_t from = 0; from < t_.in_channels; from += step_) {
      g.depth = std::min(step_, t_.in_channels - from);
      g.next_count = g.depth * width;
      if (t_.late) {
        winograd_weights(t_, late_taps(own, from, width), g.depth, width, late, late_plane());
        g.next_count = g.next_count * 9 / t_.points();
      }
      for (int64_t point = 0; point < t_.points(); ++point) {
        g.a = inputs + point * input_plane(cut) + from;
        if (t_.late) {  // the next channels' weights, or the next panel's, a part with each point
          g.b = late + point * late_plane();
          g.next = late_taps(own, from + g.depth, width).from + point * g.next_count;
        } else {
          g.b = own + (point * t_.in_channels + from) * width;
          g.next = g.b + t_.in_channels * width;
        }
        g.y = sums + point * sums_plane(cut);
        g.residual = from ? g.y : nullptr;
        run_gemm(g);
      }
    }
    WinogradOutput out;
    out.from = sums;
    out.row = width;
    out.plane = sums_plane(cut);
    out.columns = std::min(width, t_.out_channels - begin);
    if (has_bias_) out.bias = static_cast<const float*>(args.inputs[2]) + begin;
    if (has_residual_) out.residual = static_cast<const float*>(args.inputs[3]) + begin;
    out.y = static_cast<float*>(args.outputs[0]) + begin;
    out.activation = activation_;
    bool broken[kMostWinogradBlock] = {};
    winograd_output(t_, tile, g.rows, out, broken);
    std::optional<DirectSums> direct;
    for (int64_t i = 0; i < g.rows; ++i) {
      if (!broken[i]) continue;
      if (!direct) direct.emplace(t_, plain_, begin, out.columns, width);
      direct->of_tile(static_cast<const float*>(args.inputs[0]), tile + i, sums);
      winograd_store(t_, tile + i, out, sums);
    }
  }

  WinogradTiles t_;
  GemmPanels panels_;
  WinogradWeights plain_;
  BufferRef packed_;
  TileActivation activation_;
  bool has_bias_, has_residual_;
  int64_t row_, block_;
  int64_t step_;  // channels that are multiplied at a time
};

KernelPtr make_winograd(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &w = request.in(1), &y = request.out();
  if (!gemm_is_here()) return refuse(why, "only for AVX2 and AVX-512");
  if (y.count() == 0) return empty_kernel();
  if (request.attrs.s("layout") != "channels_last") return refuse(why, "channels are not last");
  if (request.attrs.i("groups") != 1) return refuse(why, "groups");
  if (x.shape.size() != 4) return refuse(why, "not two spatial axes");
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (!request.has(i)) continue;
    if (request.in(i).dtype != DType::kF32)
      return refuse(why, fmt::format("dtype {}", name(request.in(i).dtype)));
    if (!request.in(i).contiguous()) return refuse(why, fmt::format("strides of input {}", i));
  }
  if (x.count() == 0) return refuse(why, "nothing to sum over");
  if (!y.contiguous()) return refuse(why, "strides of the output");
  if (!request.constant(1) || !request.packed) return refuse(why, "the weights are not constant");
  const TensorDesc plain = plain_weights(request, w);
  const Shape spatial(x.shape.begin() + 1, x.shape.end() - 1);
  const Window window = resolve_window(request.attrs, spatial, spatial_of(plain.shape));
  for (size_t i = 0; i < 2; ++i)
    if (window.kernel[i] != 3 || window.strides[i] != 1 || window.dilations[i] != 1)
      return refuse(why, "the window is not 3x3, or takes other steps");
  WinogradTiles tiles;
  tiles.images = x.shape[0];
  tiles.height = x.shape[1];
  tiles.width = x.shape[2];
  tiles.in_channels = x.shape[3];
  if (tiles.in_channels > kMostChannels)
    return refuse(why, fmt::format("{} channels", tiles.in_channels));
  tiles.out_height = y.shape[1];
  tiles.out_width = y.shape[2];
  tiles.out_channels = y.shape[3];
  tiles.top = window.pads_begin[0];
  tiles.left = window.pads_begin[1];
  if (!cut_into_tiles(tiles, why)) return nullptr;
  const WinogradWeights weights{request.constants[1], plain.strides[0], plain.strides[1],
                                plain.strides[3]};
  const size_t bytes = static_cast<size_t>(packed_winograd_floats(tiles)) * sizeof(float);
  check_room(request, bytes);
  BufferRef packed = request.packed->get_scaled(
      *weights.constant, static_cast<size_t>(tiles.out_channels),
      fmt::format("winograd {} {} {} {} {} {}", describe_tiles(tiles), tiles.in_channels,
                  tiles.out_channels, weights.out, weights.in, weights.tap),
      bytes, [&](const std::byte* from, const double* factors, void* to) {
        pack_winograd(tiles, weights, reinterpret_cast<const float*>(from), factors,
                      static_cast<float*>(to));
      });
  return std::make_shared<WinogradKernel>(tiles, weights, std::move(packed), request);
}

const KernelRegistrar kWinograd("cpu", "conv", "winograd", 8, make_winograd);
const KernelWays kTiles("cpu", "conv", "winograd", {"2x2", "4x4", "2x2 late", "4x4 late"});

}  // namespace

}  // namespace anymps::cpu
