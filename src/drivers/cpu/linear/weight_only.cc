// SPDX-License-Identifier: Apache-2.0
// Products with weights of 8 or 4 bits that are not constant, or without AVX2. For a few rows of x
// reading the weights is all that takes time, and they are widened in registers; for more, blocks
// of them are widened into scratch memory and multiplied as floats.
#include <algorithm>
#include <optional>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/isa.h"
#include "drivers/cpu/linear/typed_gemm.h"
#include "drivers/cpu/linear/weight_only_simd.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kFewXRows = 8;
constexpr int64_t kColumnBlock = 512;  // widened at a time

class WeightOnly final : public Kernel {
 public:
  explicit WeightOnly(const KernelRequest& request)
      : four_(request.attrs.i("bits") == 4),
        zeros_(request.has(3)),
        depth_(request.in(0).shape.back()),
        columns_(request.in(1).shape[0]) {
    isa();
    multiply_ = four_                               ? multiply_int4
                : request.in(1).dtype == DType::kI8 ? multiply_int8
                                                    : multiply_uint8;
    unsigned_ = request.in(1).dtype == DType::kU8;
    for (size_t i = 0; i + 1 < request.in(0).shape.size(); ++i) rows_ *= request.in(0).shape[i];
    group_ = request.attrs.i("group") == 0 ? depth_ : request.attrs.i("group");
    groups_ = group_ == 0 ? 0 : depth_ / group_;
    if (rows_ <= kFewXRows) return;
    whole_.emplace(problem(std::min(columns_, kColumnBlock)));
    if (columns_ > kColumnBlock && columns_ % kColumnBlock != 0)
      last_.emplace(problem(columns_ % kColumnBlock));
  }

  size_t scratch_bytes() const override {
    if (whole_) return whole_->scratch_bytes();
    return static_cast<size_t>(rows_ * (depth_ + groups_)) * sizeof(float);
  }
  std::string detail() const override { return whole_ ? "widened blocks" : "in registers"; }

  void run(const KernelArgs& args) const override {
    if (!whole_) return few_rows(args);
    const auto* w = static_cast<const uint8_t*>(args.inputs[1]);
    for (int64_t first = 0; first < columns_; first += kColumnBlock) {
      const Source source{w, static_cast<const float*>(args.inputs[2]),
                          zeros_ ? static_cast<const float*>(args.inputs[3]) : nullptr, first};
      const bool part = last_ && first + kColumnBlock > columns_;
      (part ? last_ : whole_)
          ->run(args.inputs[0], &source, static_cast<float*>(args.outputs[0]) + first,
                args.scratch);
    }
  }

 private:
  struct Source {  // what stands for the matrix b
    const uint8_t* w;
    const float *scales, *zeros;
    int64_t first;  // the first column of the block
  };

  TypedGemm::Problem problem(int64_t columns) const {
    TypedGemm::Problem p;
    p.dtype = DType::kF32;
    p.rows = rows_;
    p.depth = depth_;
    p.columns = columns;
    p.a = {depth_, 1};
    p.b = {1, depth_};
    p.y = {columns_, 1};
    p.batch = {{}, std::vector<Strides>(3)};
    p.pack_b = [this](const void* from, int64_t, int64_t first, int64_t count, int64_t width,
                      void* to) {
      widen(*static_cast<const Source*>(from), first, count, width, static_cast<float*>(to));
    };
    return p;
  }

  int64_t row_bytes() const { return four_ ? depth_ / 2 : depth_; }

  // to[depth, width]: columns of the block from `first` on, zeros after the count.
  void widen(const Source& source, int64_t first, int64_t count, int64_t width, float* to) const {
    for (int64_t k = 0; k < depth_ && count < width; ++k)
      std::fill_n(to + k * width + count, width - count, 0.0f);
    constexpr int64_t kBlock = 16;  // rows of `to` that stay in the cache while columns are walked
    for (int64_t row = 0; row < depth_; row += kBlock)
      for (int64_t j = 0; j < count; ++j)
        widen_column(source, source.first + first + j, row, std::min(row + kBlock, depth_), width,
                     to + j);
  }
  // Rows [k, end) of a column, which is weight row n.
  void widen_column(const Source& source, int64_t n, int64_t k, int64_t end, int64_t width,
                    float* to) const {
    const uint8_t* w = source.w + n * row_bytes();
    while (k < end) {
      const int64_t g = k / group_, last = std::min(end, (g + 1) * group_);
      const float scale = source.scales[g * columns_ + n];
      const float zero = source.zeros ? source.zeros[g * columns_ + n] : 0.0f;
      for (; k < last; ++k) to[k * width] = static_cast<float>(stored(w, k)) * scale + zero;
    }
  }
  int stored(const uint8_t* w, int64_t k) const {
    if (!four_) return unsigned_ ? int{w[k]} : static_cast<int8_t>(w[k]);
    return (k % 2 == 0 ? w[k / 2] >> 4 : w[k / 2] & 15) - 8;
  }

  void few_rows(const KernelArgs& args) const {
    const auto* x = static_cast<const float*>(args.inputs[0]);
    const auto* w = static_cast<const uint8_t*>(args.inputs[1]);
    const auto* scales = static_cast<const float*>(args.inputs[2]);
    const float* zeros = zeros_ ? static_cast<const float*>(args.inputs[3]) : nullptr;
    auto* y = static_cast<float*>(args.outputs[0]);
    auto* split = static_cast<float*>(args.scratch);
    float* sums = split + rows_ * depth_;  // of x, by group
    for (int64_t r = 0; r < rows_; ++r)
      prepare(x + r * depth_, split + r * depth_, sums + r * groups_);
    const double ns = static_cast<double>(depth_ * rows_) * 0.06 + 5;
    parallel_for(0, columns_, ns, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        for (int64_t r = 0; r < rows_; r += kPackedRows) {
          float results[kPackedRows];
          PackedWeightRow row{.w = w + n * row_bytes(),
                              .groups = groups_,
                              .bytes = four_ ? group_ / 2 : group_,
                              .scales = scales + n,
                              .scale_step = columns_,
                              .x = (four_ ? split : x) + r * depth_,
                              .lower = four_ ? split + r * depth_ + depth_ / 2 : nullptr,
                              .x_row = depth_,
                              .rows = std::min(kPackedRows, rows_ - r),
                              .sums = results};
          multiply_(row);
          for (int64_t i = 0; i < row.rows; ++i)
            y[(r + i) * columns_ + n] = results[i] + offset(sums + (r + i) * groups_, scales + n,
                                                            zeros ? zeros + n : nullptr);
        }
    });
  }
  // The elements for the upper and the lower halves of bytes apart, and the sums of groups.
  void prepare(const float* x, float* split, float* sums) const {
    for (int64_t k = 0; four_ && k < depth_ / 2; ++k) {
      split[k] = x[2 * k];
      split[depth_ / 2 + k] = x[2 * k + 1];
    }
    for (int64_t g = 0; g < groups_; ++g) {
      double sum = 0;
      for (int64_t k = g * group_; k < (g + 1) * group_; ++k) sum += x[k];
      sums[g] = static_cast<float>(sum);
    }
  }
  // What does not depend on the stored numbers.
  float offset(const float* sums, const float* scales, const float* zeros) const {
    if (!four_ && !zeros) return 0;
    float total = 0;
    for (int64_t g = 0; g < groups_; ++g) {
      const float zero = zeros ? zeros[g * columns_] : 0.0f;
      total += sums[g] * (four_ ? zero - 8 * scales[g * columns_] : zero);
    }
    return total;
  }

  bool four_, zeros_, unsigned_ = false;
  void (*multiply_)(const PackedWeightRow&) = nullptr;
  int64_t rows_ = 1, depth_, columns_, group_ = 0, groups_ = 0;
  std::optional<TypedGemm> whole_, last_;
};

CPU_KERNEL(weight_only_matmul, "bits") {
  if (is_half(request.in(0).dtype)) return widened(request, make_weight_only_matmul, why);
  if (!dense(request, why)) return nullptr;
  if (request.out().count() == 0) return make_kernel([](const KernelArgs&) {});
  return std::make_shared<WeightOnly>(request);
}

}  // namespace

}  // namespace anymps::cpu
