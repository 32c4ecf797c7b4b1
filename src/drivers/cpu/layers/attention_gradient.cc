// SPDX-License-Identifier: Apache-2.0
// The gradient of attention as one kernel: heads are spread over the threads. Each head is copied
// into padded rows of f32, and its results back, which costs little beside its products.
#include <algorithm>
#include <cmath>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/dense_rows.h"
#include "drivers/cpu/common/gradient_ops.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/layers/attention_gradient_simd.h"
#include "drivers/cpu/onednn.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

class AttentionGradient final : public Kernel {
 public:
  explicit AttentionGradient(const KernelRequest& request) : rows_(request.in(1).dtype) {
    const Shape &q = request.in(1).shape, &v = request.in(3).shape;
    batch_ = q[0];
    heads_ = q[1];
    task_.queries = q[2];
    task_.depth = q[3];
    task_.keys = v[2];
    task_.width = v[3];
    const auto padded = [](int64_t n) {
      return (n + kGradientRound - 1) / kGradientRound * kGradientRound;
    };
    task_.depth_row = padded(task_.depth);
    task_.width_row = padded(task_.width);
    task_.causal = request.attrs.b("causal");
    const double scale = request.attrs.f("scale");
    task_.scale =
        static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(task_.depth)));
    task_.own_sums = !request.has(5);
    if (request.has(5)) sums_ = request.in(5).dtype;
    if (request.has(6)) {
      mask_dtype_ = request.in(6).dtype;
      mask_ = broadcast_strides(request.in(6), {q[0], q[1], q[2], task_.keys});
      task_.mask_row = mask_[2];
      task_.mask_column = mask_[3];
    }
    // q, dq and k, dk; dy and v, dv; log_sum and delta.
    rows_floats_ = (2 * task_.queries + 2 * task_.keys) * task_.depth_row +
                   (task_.queries + 2 * task_.keys) * task_.width_row + 2 * padded(task_.queries);
    floats_ = rows_floats_ + static_cast<int64_t>(
                                 attention_gradient_scratch(task_.keys, task_.depth, task_.width));
    floats_ = padded(floats_);
    parts_ = std::min<int64_t>(batch_ * heads_, current_threads());
    ns_ = 10.0 * static_cast<double>(task_.queries) * static_cast<double>(task_.keys) *
          static_cast<double>(task_.depth + task_.width) / 2 / 60 *
          static_cast<double>(batch_ * heads_) / static_cast<double>(parts_);
  }

  void run(const KernelArgs& args) const override {
    parallel_for(0, parts_, ns_, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part)
        for (int64_t i = part; i < batch_ * heads_; i += parts_)
          run_head(args, i, static_cast<float*>(args.scratch) + part * floats_);
    });
  }
  size_t scratch_bytes() const override {
    return static_cast<size_t>(floats_ * parts_) * sizeof(float);
  }

 private:
  void read(const void* from, int64_t head, int64_t rows, int64_t columns, int64_t padded,
            float* to) const {
    alignas(64) float tile[kRowTile];
    for (int64_t r = 0; r < rows; ++r, to += padded) {
      for_row_tiles(columns, [&](int64_t i, int64_t n) {
        std::copy_n(rows_.read(from, (head * rows + r) * columns + i, n, tile), n, to + i);
      });
      std::fill(to + columns, to + padded, 0.0f);
    }
  }
  void write(void* to, int64_t head, int64_t rows, int64_t columns, int64_t padded,
             const float* from) const {
    for (int64_t r = 0; r < rows; ++r, from += padded)
      for_row_tiles(columns, [&](int64_t i, int64_t n) {
        const int64_t first = (head * rows + r) * columns + i;
        if (rows_.direct())
          std::copy_n(from + i, n, static_cast<float*>(to) + first);
        else
          rows_.write(to, first, n, from + i);
      });
  }

  void run_head(const KernelArgs& args, int64_t head, float* scratch) const {
    AttentionGradientTask t = task_;
    float* next = scratch;
    const auto take = [&](int64_t floats) { return std::exchange(next, next + floats); };
    float *const q = take(t.queries * t.depth_row), *const k = take(t.keys * t.depth_row),
                 *const v = take(t.keys * t.width_row), *const dy = take(t.queries * t.width_row);
    t.dq = take(t.queries * t.depth_row);
    t.dk = take(t.keys * t.depth_row);
    t.dv = take(t.keys * t.width_row);
    t.log_sum = take((t.queries + kGradientRound - 1) / kGradientRound * kGradientRound);
    float* const delta = next;
    t.scratch = scratch + rows_floats_;
    read(args.inputs[1], head, t.queries, t.depth, t.depth_row, q);
    read(args.inputs[2], head, t.keys, t.depth, t.depth_row, k);
    read(args.inputs[3], head, t.keys, t.width, t.width_row, v);
    read(args.inputs[0], head, t.queries, t.width, t.width_row, dy);
    for (int64_t r = 0; r < t.queries; ++r) {
      double sum = 0;
      alignas(64) float tile[kRowTile];
      for_row_tiles(t.width, [&](int64_t i, int64_t n) {
        const float* y = rows_.read(args.inputs[4], (head * t.queries + r) * t.width + i, n, tile);
        sum += double{gradient_ops<float>().dot(dy + r * t.width_row + i, y, n)};
      });
      delta[r] = static_cast<float>(sum);
    }
    if (sums_)
      read_numbers(*sums_,
                   static_cast<const char*>(args.inputs[5]) +
                       head * t.queries * static_cast<int64_t>(size_of(*sums_)),
                   t.queries, t.log_sum);
    std::fill_n(t.dq, t.queries * t.depth_row + t.keys * (t.depth_row + t.width_row), 0.0f);
    t.q = q;
    t.k = k;
    t.v = v;
    t.dy = dy;
    t.delta = delta;
    if (!mask_.empty()) {
      const int64_t at = head / heads_ * mask_[0] + head % heads_ * mask_[1];
      if (mask_dtype_ == DType::kBool)
        t.keep = static_cast<const uint8_t*>(args.inputs[6]) + at;
      else
        t.mask = static_cast<const float*>(args.inputs[6]) + at;
    }
    attend_back(t);
    write(args.outputs[0], head, t.queries, t.depth, t.depth_row, t.dq);
    write(args.outputs[1], head, t.keys, t.depth, t.depth_row, t.dk);
    write(args.outputs[2], head, t.keys, t.width, t.width_row, t.dv);
  }

  DenseRows<float> rows_;
  AttentionGradientTask task_;
  std::optional<DType> sums_;
  Strides mask_;  // as if it had the scores' shape; empty: no mask
  DType mask_dtype_ = DType::kF32;
  int64_t batch_ = 0, heads_ = 0, parts_ = 0;
  int64_t rows_floats_ = 0, floats_ = 0;  // scratch memory of a part, in all
  double ns_ = 0;
};

KernelPtr make_attention_gradient(const KernelRequest& request, std::string& why) {
  if (request.in(1).dtype == DType::kF64) return refuse(why, "dtype f64");
  if (request.outputs.size() != 3) return refuse(why, "not all results are asked for");
  for (size_t i = 0; i < 6; ++i)
    if (request.has(i) && !request.in(i).contiguous())
      return refuse(why, "an input is not contiguous");
  for (const TensorDesc& output : request.outputs)
    if (!output.contiguous()) return refuse(why, "an output is not contiguous");
  if (request.has(6) && is_half(request.in(6).dtype))
    return widened(request, make_attention_gradient, why);
  if (request.has(6) && request.in(6).dtype != DType::kF32 && request.in(6).dtype != DType::kBool)
    return refuse(why, fmt::format("a mask of {}", name(request.in(6).dtype)));
  bool empty = true;
  for (const TensorDesc& output : request.outputs) empty = empty && output.count() == 0;
  if (empty) return empty_kernel();
  const Shape &q = request.in(1).shape, &v = request.in(3).shape;
  if (q[0] * q[1] * q[2] * q[3] * v[2] * v[3] == 0) return refuse(why, "nothing to multiply");
  return std::make_shared<AttentionGradient>(request);
}

const KernelRegistrar kAttentionGradient("cpu", "sdpa_gradient", "fused", 10,
                                         make_attention_gradient);

}  // namespace

}  // namespace anymps::cpu
