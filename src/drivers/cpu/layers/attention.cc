// SPDX-License-Identifier: Apache-2.0
// Attention as one kernel: heads and blocks of queries are spread over the threads, and the matrix
// of scores is never stored. q, k, v and y may be views (heads of a joint tensor, or transposed).
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/layers/attention_simd.h"
#include "drivers/cpu/onednn.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(const KernelRequest& request)
      : q_(request.in(0)), k_(request.in(1)), v_(request.in(2)), y_(request.out()) {
    const Shape& q = q_.shape;
    heads_ = q[0] * q[1];
    task_.keys = k_.shape[2];
    task_.depth = q[3];
    task_.width = v_.shape[3];
    task_.q_row = q_.strides[2];
    task_.k_row = k_.strides[2];
    task_.v_row = v_.strides[2];
    task_.y_row = y_.strides[2];
    task_.causal = request.attrs.b("causal");
    log_sum_ = request.outputs.size() > 1;
    const double scale = request.attrs.f("scale");
    task_.scale =
        static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(task_.depth)));
    if (request.has(3)) {
      mask_dtype_ = request.in(3).dtype;
      mask_ = broadcast_strides(request.in(3), {q[0], q[1], q[2], task_.keys});
      task_.mask_row = mask_[2];
      task_.mask_column = mask_[3];
    }
    // Long blocks transpose keys less often; there should be a few for each thread.
    const int64_t threads = current_threads();
    const int64_t per_head = std::max<int64_t>(1, (4 * threads + heads_ - 1) / heads_);
    block_ =
        threads == 1 ? q[2] : std::max<int64_t>(kSmallestBlock, (q[2] + per_head - 1) / per_head);
    block_ = std::min(std::min(block_, kLargestBlock), q[2]);
    blocks_ = (q[2] + block_ - 1) / block_;
    parts_ = std::min<int64_t>(threads == 1 ? 1 : 4 * threads, heads_ * blocks_);
    floats_ = attention_scratch(block_, task_.keys, task_.depth, task_.width);
    floats_ = (floats_ + 15) / 16 * 16;
    ns_ = 4.0 * static_cast<double>(q_.count()) * static_cast<double>(task_.keys) / kFlopsPerNs /
          static_cast<double>(parts_);
  }

  void run(const KernelArgs& args) const override {
    parallel_for(0, parts_, ns_, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part)
        for (int64_t i = part; i < heads_ * blocks_; i += parts_) run_block(args, part, i);
    });
  }
  size_t scratch_bytes() const override {
    return floats_ * sizeof(float) * static_cast<size_t>(parts_);
  }
  std::string detail() const override { return fmt::format("blocks of {} queries", block_); }

 private:
  static constexpr int64_t kSmallestBlock = 48, kLargestBlock = 1024;
  static constexpr double kFlopsPerNs = 80;

  void run_block(const KernelArgs& args, int64_t part, int64_t i) const {
    const int64_t head = i / blocks_, first = i % blocks_ * block_;
    const int64_t b = head / q_.shape[1], h = head % q_.shape[1];
    const auto at = [&](const Strides& strides, int64_t row) {
      return b * strides[0] + h * strides[1] + row * strides[2];
    };
    AttentionTask task = task_;
    task.q = static_cast<const float*>(args.inputs[0]) + at(q_.strides, first);
    task.k = static_cast<const float*>(args.inputs[1]) + at(k_.strides, 0);
    task.v = static_cast<const float*>(args.inputs[2]) + at(v_.strides, 0);
    task.y = static_cast<float*>(args.outputs[0]) + at(y_.strides, first);
    task.first_query = first;
    task.queries = std::min(block_, q_.shape[2] - first);
    if (!mask_.empty()) {
      if (mask_dtype_ == DType::kBool)
        task.keep = static_cast<const uint8_t*>(args.inputs[3]) + at(mask_, first);
      else
        task.mask = static_cast<const float*>(args.inputs[3]) + at(mask_, first);
    }
    if (log_sum_) task.log_sum = static_cast<float*>(args.outputs[1]) + head * q_.shape[2] + first;
    task.scratch = static_cast<float*>(args.scratch) + part * static_cast<int64_t>(floats_);
    attend(task);
  }

  TensorDesc q_, k_, v_, y_;
  Strides mask_;  // as if it had the scores' shape; empty: no mask
  DType mask_dtype_ = DType::kF32;
  AttentionTask task_;
  int64_t heads_ = 0, block_ = 0, blocks_ = 0, parts_ = 0;
  size_t floats_ = 0;  // scratch memory of a part
  bool log_sum_ = false;
  double ns_ = 0;
};

KernelPtr make_f32(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0 && (request.outputs.size() < 2 || request.out(1).count() == 0))
    return empty_kernel();
  if (request.out().count() == 0) return refuse(why, "sums alone");
  if (request.in(0).dtype != DType::kF32)
    return refuse(why, fmt::format("dtype {}", name(request.in(0).dtype)));
  if (request.in(1).shape[2] == 0) return refuse(why, "no keys");
  if (request.in(0).shape[3] == 0) return refuse(why, "no depth");
  if (request.has(3) && request.in(3).dtype != DType::kF32 && request.in(3).dtype != DType::kBool)
    return refuse(why, fmt::format("a mask of {}", name(request.in(3).dtype)));
  for (size_t i = 0; i < 3; ++i)
    if (request.in(i).shape[3] > 1 && request.in(i).strides[3] != 1)
      return refuse(why, fmt::format("the elements of a row of input {} are not adjacent", i));
  if (request.out().shape[3] > 1 && request.out().strides[3] != 1)
    return refuse(why, "the elements of a row of the result are not adjacent");
  if (request.outputs.size() > 1 && !request.out(1).contiguous())
    return refuse(why, "the sums are not contiguous");
  return std::make_shared<AttentionKernel>(request);
}

const KernelRegistrar kAttention("cpu", "sdpa", "fused", 10,
                                 [](const KernelRequest& request, std::string& why) {
                                   return is_half(request.in(0).dtype)
                                              ? widened(request, make_f32, why)
                                              : make_f32(request, why);
                                 });

}  // namespace

}  // namespace anymps::cpu
