// SPDX-License-Identifier: Apache-2.0
// 3x3 convolutions with a quarter of the products, channels last. A run goes through the tiles
// chunk by chunk: the inputs of a chunk are transformed, then each task multiplies a block of tiles
// by a panel of weights, one product for each point, and transforms the sums back while they are in
// the core's cache.
#include "drivers/cpu/layers/winograd/winograd.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "drivers/cpu/layers/convolution.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"

namespace anymps::cpu {

namespace {

using convolution::plain_weights;
using convolution::spatial_of;

constexpr int64_t kBlock = 4 * kGemmRows;    // tiles of a task
constexpr int64_t kMostDepth = 1280;         // of one product; deeper panels leave the L2 cache
constexpr int64_t kBytesOfThread = 1 << 20;  // of a chunk's inputs: they stay near the cores,
constexpr int64_t kMostBytes = 4 << 20;      // and are still enough for many threads
constexpr int64_t kAlignment = 16;           // floats in a cache line
constexpr double kFlopsInNs = 100;
constexpr double kInputNs = 0.08;  // to transform one element

// Sums of a task: they stay in the cache of the thread, which has many.
float* sums_memory(int64_t count) {
  thread_local std::vector<float> memory;  // NOLINT: kept, so that a run allocates nothing
  if (std::ssize(memory) < count + kAlignment) memory.resize(count + kAlignment);
  return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
}

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
        row_((tiles.in_channels + kGemmLanes - 1) / kGemmLanes * kGemmLanes) {
    most_ = chunk_of(kMostBytes);
  }

  void run(const KernelArgs& args) const override {
    const int64_t chunk = std::min(most_, chunk_of(kBytesOfThread * current_threads()));
    for (int64_t first = 0; first < t_.count(); first += chunk) {
      const int64_t count = std::min(chunk, t_.count() - first);
      transform(args, first, count);
      multiply(args, first, count);
    }
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(t_.points() * plane()) * sizeof(float);
  }
  bool reads(size_t i) const override { return i != 1; }
  std::string detail() const override { return fmt::format("{0}x{0}", t_.edge); }

 private:
  // Whole blocks of tiles whose transformed inputs have so many bytes, or all tiles.
  int64_t chunk_of(int64_t bytes) const {
    const int64_t tile = t_.points() * row_ * static_cast<int64_t>(sizeof(float));
    return std::min(t_.count(), std::max(bytes / (tile * kBlock), int64_t{1}) * kBlock);
  }
  // A cache line more than a power of two, which would bring all points to the same sets.
  int64_t plane() const { return most_ * row_ + kAlignment; }
  const float* weights() const { return static_cast<const float*>(packed_->data()); }

  void transform(const KernelArgs& args, int64_t chunk, int64_t count) const {
    const auto* x = static_cast<const float*>(args.inputs[0]);
    const float* zeros = weights() + panels_.vectors * kGemmLanes * t_.points() * t_.in_channels;
    const double ns = kInputNs * static_cast<double>(t_.points() * row_);
    parallel_for(0, count, ns, [&](int64_t first, int64_t last) {
      winograd_input(t_, chunk + first, last - first,
                     {x, zeros, static_cast<float*>(args.scratch) + first * row_, row_, plane()});
    });
  }

  void multiply(const KernelArgs& args, int64_t chunk, int64_t count) const {
    const int threads = current_threads();
    int64_t block = kBlock;
    while (block > kGemmRows && (count + block - 1) / block * panels_.count < 4 * threads)
      block /= 2;
    const int64_t blocks = (count + block - 1) / block;
    const double ns = 2.0 *
                      static_cast<double>(std::min(block, count) * t_.points() * t_.in_channels *
                                          t_.out_channels) /
                      static_cast<double>(panels_.count) / kFlopsInNs;
    // Tasks that follow each other, which one thread mostly does, share a panel: it is larger than
    // a block's inputs.
    parallel_for(0, blocks * panels_.count, ns, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t begin = task % blocks * block;
        run_task(args, chunk + begin, begin, std::min(block, count - begin), task / blocks);
      }
    });
  }

  void run_task(const KernelArgs& args, int64_t tile, int64_t in_chunk, int64_t count,
                int64_t panel) const {
    const int64_t begin = panels_.begin(panel), width = panels_.begin(panel + 1) - begin;
    const int64_t sums_plane = count * width + kAlignment;
    float* const sums = sums_memory(t_.points() * sums_plane);
    GemmPanel g;
    g.rows = count;
    g.columns = g.y_row = g.residual_row = width;
    g.a_row = row_;
    for (int64_t point = 0; point < t_.points(); ++point) {
      const float* a = static_cast<const float*>(args.scratch) + point * plane() + in_chunk * row_;
      const float* b = weights() + (begin * t_.points() + point * width) * t_.in_channels;
      g.y = sums + point * sums_plane;
      for (int64_t from = 0; from < t_.in_channels; from += kMostDepth) {
        g.depth = std::min(kMostDepth, t_.in_channels - from);
        g.a = a + from;
        g.b = b + from * width;
        g.residual = from ? g.y : nullptr;
        run_gemm(g);
      }
    }
    WinogradOutput out;
    out.from = sums;
    out.row = width;
    out.plane = sums_plane;
    out.columns = std::min(width, t_.out_channels - begin);
    if (has_bias_) out.bias = static_cast<const float*>(args.inputs[2]) + begin;
    if (has_residual_) out.residual = static_cast<const float*>(args.inputs[3]) + begin;
    out.y = static_cast<float*>(args.outputs[0]) + begin;
    out.activation = activation_;
    bool broken[kBlock] = {};
    winograd_output(t_, tile, count, out, broken);
    std::optional<DirectSums> direct;
    for (int64_t i = 0; i < count; ++i) {
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
  int64_t row_, most_ = 0;
};

KernelPtr make_winograd(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &w = request.in(1), &y = request.out();
  if (!gemm_is_here()) return refuse(why, "only for AVX-512");
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
  tiles.out_height = y.shape[1];
  tiles.out_width = y.shape[2];
  tiles.out_channels = y.shape[3];
  tiles.top = window.pads_begin[0];
  tiles.left = window.pads_begin[1];
  const int64_t edge = winograd_edge(tiles, why);
  if (edge == 0) return nullptr;
  cut_into_tiles(tiles, edge);
  const WinogradWeights weights{request.constants[1], plain.strides[0], plain.strides[1],
                                plain.strides[3]};
  const size_t bytes = static_cast<size_t>(packed_winograd_floats(tiles)) * sizeof(float);
  check_room(request, bytes);
  BufferRef packed =
      request.packed->get(*weights.constant,
                          fmt::format("winograd {} {} {} {} {} {}", edge, tiles.in_channels,
                                      tiles.out_channels, weights.out, weights.in, weights.tap),
                          bytes, [&](const std::byte* from, void* to) {
                            pack_winograd(tiles, weights, reinterpret_cast<const float*>(from),
                                          static_cast<float*>(to));
                          });
  return std::make_shared<WinogradKernel>(tiles, weights, std::move(packed), request);
}

const KernelRegistrar kWinograd("cpu", "conv", "winograd", 8, make_winograd);

}  // namespace

}  // namespace anymps::cpu
