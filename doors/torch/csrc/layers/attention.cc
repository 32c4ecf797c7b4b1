// SPDX-License-Identifier: Apache-2.0
// Attention: PyTorch's function chooses among kernels by device, and knows none for this one. What
// the engine's kernel computes goes to the op for fused attention whose gradient PyTorch knows (it
// is named after the CPU, but is any device's); the rest is composed of products and a softmax.
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <torch/library.h>

namespace anymps::aten {

namespace {

using at::Tensor;

// Keys or values with a head for each of the query's: several share one.
Tensor for_each_head(const Tensor& x, int64_t heads) {
  const int64_t own = x.size(1);
  if (own == heads) return x;
  return x.unsqueeze(2)
      .expand({x.size(0), own, heads / own, x.size(2), x.size(3)})
      .reshape({x.size(0), heads, x.size(2), x.size(3)});
}

bool suits(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask,
           double dropout, bool causal, std::optional<double> scale, bool share) {
  if (dropout > 0 || scale == 0.0 || q.dim() != 4 || k.dim() != 4 || v.dim() != 4) return false;
  if (!q.is_floating_point() || k.scalar_type() != q.scalar_type() ||
      v.scalar_type() != q.scalar_type())
    return false;
  if (q.numel() == 0 || k.numel() == 0 || v.numel() == 0) return false;
  if (k.size(0) != q.size(0) || v.size(0) != q.size(0) || k.size(1) != v.size(1)) return false;
  const bool heads = share ? k.size(1) > 0 && q.size(1) % k.size(1) == 0 : k.size(1) == q.size(1);
  if (!heads || k.size(2) != v.size(2) || k.size(3) != q.size(3)) return false;
  if (!mask || !mask->defined()) return true;
  return !causal && !mask->requires_grad() && mask->dim() <= 4 &&
         (mask->scalar_type() == at::kBool || mask->scalar_type() == q.scalar_type());
}

Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value,
              const std::optional<Tensor>& mask, double dropout, bool causal,
              std::optional<double> scale, bool share) {
  // Without heads: as one.
  if (query.dim() == 3 && key.dim() == 3 && value.dim() == 3 && !share) {
    std::optional<Tensor> wide = mask;
    if (mask && mask->dim() == 3) wide = mask->unsqueeze(1);
    const Tensor q = query.unsqueeze(1), k = key.unsqueeze(1), v = value.unsqueeze(1);
    if (suits(q, k, v, wide, dropout, causal, scale, false))
      return attend(q, k, v, wide, dropout, causal, scale, false).squeeze(1);
  }
  if (!suits(query, key, value, mask, dropout, causal, scale, share))
    return std::get<0>(at::_scaled_dot_product_attention_math(query, key, value, mask, dropout,
                                                              causal, std::nullopt, scale, share));
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
      query, for_each_head(key, query.size(1)), for_each_head(value, query.size(1)), 0.0, causal,
      mask, scale));
}

// Which kernel PyTorch's own code would take: the composition, number 0.
int64_t choice(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, double,
               bool, std::optional<double>, bool) {
  return 0;
}

// What upstream has for itself: the composition, with the weights that it attends with.
std::tuple<Tensor, Tensor> composed(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const std::optional<Tensor>& mask, double dropout, bool causal,
                                    const std::optional<Tensor>& dropped,
                                    std::optional<double> scale, bool share) {
  return at::_scaled_dot_product_attention_math(query, key, value, mask, dropout, causal, dropped,
                                                scale, share);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("_scaled_dot_product_attention_math_for_mps", composed);
  m.impl("scaled_dot_product_attention", attend);
  m.impl("_fused_sdp_choice", choice);
}
TORCH_LIBRARY_IMPL(aten, AutogradMPS, m) { m.impl("scaled_dot_product_attention", attend); }

}  // namespace anymps::aten
