// SPDX-License-Identifier: Apache-2.0
// Training for quantization, observer and rounding in one: running extrema of what has passed, a
// scale and a zero point by PyTorch's own rule, and the tensor rounded to levels.
#include <cmath>
#include <limits>

#include <ATen/native/quantized/cpu/QuantUtils.h>
#include <ATen/ops/_aminmax.h>
#include <ATen/ops/_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.h>
#include <ATen/ops/fake_quantize_per_channel_affine_cachemask.h>
#include <ATen/ops/ones_like.h>
#include <torch/library.h>
#include "device/written.h"
#include "strict.h"

namespace anymps::aten {

namespace {

using at::Tensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The extrema of the whole, or of each slice along the first axis.
std::tuple<Tensor, Tensor> extrema(const Tensor& self, bool per_row) {
  const auto [low, high] = per_row ? at::_aminmax(self.flatten(1), 1) : at::_aminmax(self);
  return {low.to(at::kFloat).contiguous(), high.to(at::kFloat).contiguous()};
}

void follow(const Tensor& running, const Tensor& seen, float share) {
  note_write(running);
  float* average = running.mutable_data_ptr<float>();
  const float* now = seen.const_data_ptr<float>();
  TORCH_CHECK(running.numel() == seen.numel() && running.is_contiguous(),
              "[_fused_moving_avg_obs_fq_helper] there are ", running.numel(),
              " running extrema, must be ", seen.numel());
  for (int64_t i = 0; i < seen.numel(); ++i)
    average[i] = std::isinf(average[i]) ? now[i] : average[i] + share * (now[i] - average[i]);
}

std::tuple<Tensor, Tensor> observe_and_round(const Tensor& self, const Tensor& observer_on,
                                             const Tensor& fake_quant_on, Tensor& running_min,
                                             Tensor& running_max, Tensor& scale, Tensor& zero_point,
                                             double averaging_const, int64_t quant_min,
                                             int64_t quant_max, int64_t ch_axis, bool per_row,
                                             bool symmetric) {
  TORCH_CHECK(!per_row || ch_axis == 0,
              "Per-channel FakeQuant in fused_moving_avg_obs_fake_quant only supports axis == 0");
  if (per_row && running_min.numel() == 0) {
    running_min.resize_({self.size(0)}).fill_(kInfinity);
    running_max.resize_({self.size(0)}).fill_(-kInfinity);
    scale.resize_({self.size(0)});
    zero_point.resize_({self.size(0)});
  }
  if (observer_on.item().toInt() != 0) {
    const auto [low, high] = extrema(self, per_row);
    follow(running_min, low, static_cast<float>(averaging_const));
    follow(running_max, high, static_cast<float>(averaging_const));
  }
  if (fake_quant_on.item().toInt() == 0)
    return {self.clone(), at::ones_like(self, self.options().dtype(at::kBool))};
  TORCH_CHECK(scale.numel() >= running_min.numel() && zero_point.numel() >= running_min.numel(),
              "[_fused_moving_avg_obs_fq_helper] a scale and a zero point is needed for each of ",
              running_min.numel(), " extrema");
  note_write(scale);
  note_write(zero_point);
  for (int64_t i = 0; i < running_min.numel(); ++i) {
    const auto found = quant_utils::ChooseQuantizationParams(
        running_min.const_data_ptr<float>()[i], running_max.const_data_ptr<float>()[i],
        static_cast<int32_t>(quant_min), static_cast<int32_t>(quant_max), symmetric);
    scale.mutable_data_ptr<float>()[i] = static_cast<float>(found.scale);
    zero_point.mutable_data_ptr<int32_t>()[i] = found.zero_point;
  }
  if (per_row)
    return at::fake_quantize_per_channel_affine_cachemask(self, scale, zero_point, 0, quant_min,
                                                          quant_max);
  return at::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
      self, scale, zero_point, fake_quant_on, quant_min, quant_max);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  if (!strict()) m.impl("_fused_moving_avg_obs_fq_helper", observe_and_round);
}

}  // namespace anymps::aten
