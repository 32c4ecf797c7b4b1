// SPDX-License-Identifier: Apache-2.0
// Attention: PyTorch's function chooses among kernels by device, and knows none for this one. What
// the engine's kernel computes goes to the op for fused attention whose gradient PyTorch knows (it
// is named after the CPU, but is any device's); the rest is composed of products and a softmax.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace anymps::aten {

namespace {

using at::Tensor;

// Keys or values with a head for each of the query's: several share one.
Tensor for_each_head(const Tensor& x, const c10::SymInt& heads) {
  const c10::SymIntArrayRef n = x.sym_sizes();
  if (n[1] == heads) return x;
  return x.unsqueeze(2)
      .expand_symint({n[0], n[1], heads / n[1], n[2], n[3]})
      .reshape_symint({n[0], heads, n[2], n[3]});
}

// A mask as numbers to add, which is how PyTorch's composition takes it: it would add 1 and 0.
std::optional<Tensor> to_add(const std::optional<Tensor>& mask, const Tensor& query) {
  if (!mask || !mask->defined() || mask->scalar_type() != at::kBool) return mask;
  return at::zeros_like(*mask, query.options())
      .masked_fill(mask->logical_not(), -std::numeric_limits<double>::infinity());
}

// Whether derivatives are carried forward, which the fused op has none for: in a transform of
// torch.func, or in a tensor itself.
bool forward_derivatives(std::initializer_list<const Tensor*> tensors) {
  for (const auto& layer : at::functorch::getDynamicLayerStack())
    if (layer.key() == at::functorch::TransformType::Jvp) return true;
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor* x) { return x->_fw_grad(0).defined(); });
}

bool suits(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask,
           double dropout, bool causal, std::optional<double> scale, bool share) {
  if (dropout > 0 || scale == 0.0 || q.dim() != 4 || k.dim() != 4 || v.dim() != 4) return false;
  if (!q.is_floating_point() || k.scalar_type() != q.scalar_type() ||
      v.scalar_type() != q.scalar_type())
    return false;
  // Extents may be symbols, of a graph that is traced.
  const c10::SymIntArrayRef of_q = q.sym_sizes(), of_k = k.sym_sizes(), of_v = v.sym_sizes();
  if (q.sym_numel() == 0 || k.sym_numel() == 0 || v.sym_numel() == 0) return false;
  if (of_k[0] != of_q[0] || of_v[0] != of_q[0] || of_k[1] != of_v[1]) return false;
  if (share ? of_q[1] % of_k[1] != 0 : of_k[1] != of_q[1]) return false;
  if (of_k[2] != of_v[2] || of_k[3] != of_q[3]) return false;
  if (!mask || !mask->defined()) return true;
  return !causal && !mask->requires_grad() && mask->dim() <= 4 &&
         (mask->scalar_type() == at::kBool || mask->scalar_type() == q.scalar_type());
}

Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value,
              const std::optional<Tensor>& mask, double dropout, bool causal,
              std::optional<double> scale, bool share) {
  if (mask && mask->defined())
    TORCH_CHECK(mask->scalar_type() == at::kBool || mask->scalar_type() == at::kFloat ||
                    mask->scalar_type() == query.scalar_type(),
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got ",
                "attn_mask.dtype: ", mask->scalar_type(), " and query.dtype: ", query.scalar_type(),
                " instead.");
  // Without heads: as one.
  if (query.dim() == 3 && key.dim() == 3 && value.dim() == 3 && !share) {
    std::optional<Tensor> wide = mask;
    if (mask && mask->dim() == 3) wide = mask->unsqueeze(1);
    const Tensor q = query.unsqueeze(1), k = key.unsqueeze(1), v = value.unsqueeze(1);
    if (suits(q, k, v, wide, dropout, causal, scale, false))
      return attend(q, k, v, wide, dropout, causal, scale, false).squeeze(1);
  }
  if (!suits(query, key, value, mask, dropout, causal, scale, share) ||
      forward_derivatives({&query, &key, &value}))
    return std::get<0>(at::_scaled_dot_product_attention_math(
        query, key, value, to_add(mask, query), dropout, causal, std::nullopt, scale, share));
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
      query, for_each_head(key, query.sym_size(1)), for_each_head(value, query.sym_size(1)), 0.0,
      causal, mask, scale));
}

using Three = std::tuple<Tensor, Tensor, Tensor>;

// The gradients. The fused op has none of its own: where they are asked for, they are composed.
Three gradients(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                const Tensor& out, const Tensor& logsumexp, double dropout, bool causal,
                const std::optional<Tensor>& mask, std::optional<double> scale) {
  const bool again = at::GradMode::is_enabled() && (grad.requires_grad() || q.requires_grad() ||
                                                    k.requires_grad() || v.requires_grad());
  if (!again) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return at::_scaled_dot_product_flash_attention_for_cpu_backward(grad, q, k, v, out, logsumexp,
                                                                    dropout, causal, mask, scale);
  }
  const double factor = scale.value_or(
      1.0 / std::sqrt(static_cast<double>(q.sym_size(-1).guard_int(__FILE__, __LINE__))));
  Tensor scores = at::matmul(q, k.mT()) * factor;
  const double nothing = -std::numeric_limits<double>::infinity();
  if (causal) {
    scores = scores.masked_fill(at::ones_like(scores, at::kBool).triu(1), nothing);
  } else if (mask && mask->defined()) {
    scores = mask->scalar_type() == at::kBool ? scores.masked_fill(mask->logical_not(), nothing)
                                              : scores + *mask;
  }
  // A row that attends to nothing has no weights.
  const Tensor some = scores.amax({-1}, true).ne(nothing);
  const Tensor weights = at::softmax(scores.masked_fill(some.logical_not(), 0.0), -1) * some;
  const Tensor of_weights = at::matmul(grad, v.mT());
  const Tensor of_scores = weights * (of_weights - (weights * of_weights).sum(-1, true)) * factor;
  return {at::matmul(of_scores, k), at::matmul(of_scores.mT(), q), at::matmul(weights.mT(), grad)};
}

// Under vmap PyTorch's own code asks its list of devices which kernel to take.
Tensor attend_in_batches(const Tensor& query, const Tensor& key, const Tensor& value,
                         const std::optional<Tensor>& mask, double dropout, bool causal,
                         std::optional<double> scale, bool share) {
  if (!query.device().is_mps())
    return at::native::scaled_dot_product_attention(query, key, value, mask, dropout, causal, scale,
                                                    share);
  return std::get<0>(at::_scaled_dot_product_attention_math(
      query, key, value, to_add(mask, query), dropout, causal, std::nullopt, scale, share));
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
  return at::_scaled_dot_product_attention_math(query, key, value, to_add(mask, query), dropout,
                                                causal, dropped, scale, share);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("_scaled_dot_product_attention_math_for_mps", composed);
  m.impl("scaled_dot_product_attention", attend);
  m.impl("_fused_sdp_choice", choice);
}
TORCH_LIBRARY_IMPL(aten, AutogradMPS, m) {
  m.impl("scaled_dot_product_attention", attend);
  m.impl("_scaled_dot_product_flash_attention_for_cpu_backward", gradients);
}

namespace {

// PyTorch tells of kernels that take the place of others: of this one it need not.
class Silence final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

[[maybe_unused]] const bool registered = [] {
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  static std::vector<torch::Library> libraries;
  for (const auto key :
       {c10::DispatchKey::FuncTorchVmapMode, c10::DispatchKey::FuncTorchBatchedDecomposition}) {
    libraries.emplace_back(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    libraries.back().impl("scaled_dot_product_attention", attend_in_batches);
  }
  return true;
}();

}  // namespace

}  // namespace anymps::aten
