// SPDX-License-Identifier: Apache-2.0
// Products with constant weights of 8 or 4 bits, which are packed once, in panels of columns, and
// stay in few bits. For a few rows of x they are widened in registers; for more, a block of a panel
// is widened into the cache and multiplied by the tiles of the f32 product.
#include <algorithm>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/isa.h"
#include "drivers/cpu/linear/few_bits/packed_weight_only_simd.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kMostInRegisters = 16;  // rows of x
constexpr int64_t kDepthBlock = 128;      // rows of a panel that are floats at a time: 32 KiB
constexpr int64_t kMostRows = 256;        // of x in a task, and the least: a task widens its panel
constexpr int64_t kLeastRows = 28;
constexpr double kFlopsInNs = 100;
constexpr double kWidenNs = 0.06;  // an element
constexpr int64_t kTile = 64;      // bytes that are turned at a time

// packed[depth, width] = w[columns, depth], zeros after the columns; of bytes, whatever they hold.
void pack_bytes(const uint8_t* w, int64_t columns, int64_t depth, int64_t width, uint8_t flip,
                uint8_t* packed) {
  for (int64_t first = 0; first < depth; first += kTile) {
    const int64_t end = std::min(depth, first + kTile);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t k = first; k < end; ++k) packed[k * width + j] = w[j * depth + k] ^ flip;
    for (int64_t k = first; k < end && columns < width; ++k)
      std::fill(packed + k * width + columns, packed + (k + 1) * width, uint8_t{0});
  }
}

class PackedWeightOnly final : public Kernel {
 public:
  explicit PackedWeightOnly(const KernelRequest& request)
      : four_(request.attrs.i("bits") == 4),
        zeros_(request.has(3)),
        rows_(request.out().count() / request.in(1).shape[0]),
        depth_(request.in(0).shape.back()),
        columns_(request.in(1).shape[0]),
        group_(request.attrs.i("group") == 0 ? depth_ : request.attrs.i("group")),
        panels_(columns_) {
    if (!four_)
      code_ = request.in(1).dtype == DType::kI8 ? FewBitsCode::kSigned : FewBitsCode::kUnsigned;
    const int64_t row_bytes = this->row_bytes();
    const auto bytes = static_cast<size_t>(panels_.vectors * kGemmLanes * row_bytes);
    weights_ = request.packed->get(
        *request.constant(1), fmt::format("few bits {}", four_ ? 4 : 8), bytes,
        [&](const std::byte* plain, void* packed) {
          const auto* from = reinterpret_cast<const uint8_t*>(plain);
          // Halves count from -8; the upper bit tells the sign instead.
          const uint8_t flip = four_ ? 0x88 : 0;
          parallel_for(0, panels_.count, static_cast<double>(row_bytes * kTile),
                       [&](int64_t first, int64_t last) {
                         for (int64_t i = first; i < last; ++i) {
                           const int64_t begin = panels_.begin(i), end = panels_.begin(i + 1);
                           pack_bytes(from + begin * row_bytes, std::min(end, columns_) - begin,
                                      row_bytes, end - begin, flip,
                                      static_cast<uint8_t*>(packed) + begin * row_bytes);
                         }
                       });
        });
  }

  bool reads(size_t i) const override { return i != 1; }
  std::string detail() const override { return in_registers() ? "in registers" : "in blocks"; }

  void run(const KernelArgs& args) const override {
    if (in_registers()) {
      const double ns = panel_elements() * static_cast<double>(rows_) * kWidenNs;
      parallel_for(0, panels_.count, ns, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i)
          for (int64_t row = 0; row < rows_; row += kFewBitsRows)
            multiply_few_bits(
                panel(args, i), static_cast<const float*>(args.inputs[0]) + row * depth_,
                std::min(kFewBitsRows, rows_ - row), depth_,
                static_cast<float*>(args.outputs[0]) + row * columns_ + panels_.begin(i), columns_);
      });
      return;
    }
    const int threads = current_threads();
    int64_t rows = std::min(rows_, kMostRows);
    while (rows >= 2 * kLeastRows && (rows_ + rows - 1) / rows * panels_.count < 4 * threads)
      rows /= 2;
    const int64_t chunks = (rows_ + rows - 1) / rows;
    const double ns = panel_elements() * (kWidenNs + 2 * static_cast<double>(rows) / kFlopsInNs);
    parallel_for(0, chunks * panels_.count, ns, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task)
        run_task(args, task % chunks * rows, rows, task / chunks);
    });
  }

 private:
  bool in_registers() const { return rows_ <= kMostInRegisters; }
  double panel_elements() const {
    return static_cast<double>(depth_ * columns_) / static_cast<double>(panels_.count);
  }
  int64_t row_bytes() const { return four_ ? depth_ / 2 : depth_; }

  FewBitsPanel panel(const KernelArgs& args, int64_t i) const {
    const int64_t begin = panels_.begin(i);
    FewBitsPanel p;
    p.code = code_;
    p.w = static_cast<const uint8_t*>(weights_->data()) + begin * row_bytes();
    p.width = panels_.begin(i + 1) - begin;
    p.columns = std::min(p.width, columns_ - begin);
    p.group = group_;
    p.scales = static_cast<const float*>(args.inputs[2]) + begin;
    if (zeros_) p.zeros = static_cast<const float*>(args.inputs[3]) + begin;
    p.step = columns_;
    return p;
  }

  void run_task(const KernelArgs& args, int64_t row, int64_t rows, int64_t i) const {
    alignas(64) float block[kDepthBlock * kGemmVectors * kGemmLanes];
    const FewBitsPanel b = panel(args, i);
    GemmPanel p;
    p.rows = std::min(rows, rows_ - row);
    p.columns = b.columns;
    p.a_row = depth_;
    p.b = block;
    p.y = static_cast<float*>(args.outputs[0]) + row * columns_ + panels_.begin(i);
    p.y_row = p.residual_row = columns_;
    for (int64_t k = 0; k < depth_; k += kDepthBlock) {
      p.depth = std::min(kDepthBlock, depth_ - k);
      widen_few_bits(b, k, k + p.depth, block);
      p.a = static_cast<const float*>(args.inputs[0]) + row * depth_ + k;
      p.residual = k == 0 ? nullptr : p.y;
      run_gemm(p);
    }
  }

  const bool four_, zeros_;
  FewBitsCode code_ = FewBitsCode::kHalves;
  const int64_t rows_, depth_, columns_, group_;
  const GemmPanels panels_;
  BufferRef weights_;
};

KernelPtr make_packed_weight_only(const KernelRequest& request, std::string& why) {
  if (!gemm_is_here()) return refuse(why, "only for AVX2 and AVX-512");
  if (!request.constant(1) || !request.packed) return refuse(why, "the weights are not constant");
  if (request.out().count() == 0 || request.in(0).count() == 0) return refuse(why, "no elements");
  if (is_half(request.in(0).dtype)) return widened(request, make_packed_weight_only, why);
  if (!dense(request, why)) return nullptr;
  return std::make_shared<PackedWeightOnly>(request);
}

const KernelRegistrar kPackedWeightOnly("cpu", "weight_only_matmul", "packed", 5,
                                        make_packed_weight_only);

}  // namespace

}  // namespace anymps::cpu
