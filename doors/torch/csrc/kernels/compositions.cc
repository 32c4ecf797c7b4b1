// SPDX-License-Identifier: Apache-2.0
// Ops that PyTorch itself composes of other ops, whatever the device: what they hand to their
// gradients, and which errors they find among the elements, is theirs to say.
#include <array>

#include <ATen/native/Resize.h>
#include <ATen/ops/_linalg_det_native.h>
#include <ATen/ops/_linalg_slogdet_native.h>
#include <ATen/ops/_linalg_solve_ex_native.h>
#include <ATen/ops/_native_multi_head_attention_native.h>
#include <ATen/ops/_transformer_encoder_layer_fwd_native.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_lu_native.h>
#include <ATen/ops/linalg_matrix_sqrth_native.h>
#include <ATen/ops/linalg_polar_native.h>
#include <ATen/ops/multinomial_native.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/searchsorted.h>
#include <torch/library.h>
#include "strict.h"

namespace anymps::aten {

namespace {

using at::Tensor;

// A structured op of PyTorch, with the results that were given: they get the sizes that it finds.
template <class Structured, size_t kResults>
class Composed final : public Structured {
 public:
  using Results = std::array<const Tensor*, kResults>;
  explicit Composed(Results results) : results_(results) {}
  const Tensor& maybe_get_output(int64_t i) override { return *results_[i]; }
  void set_output_raw_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options) override {
    const Tensor& result = *results_[i];
    TORCH_CHECK(options.dtype() == result.dtype(), "Expected out tensor to have dtype ",
                options.dtype(), ", but got ", result.dtype(), " instead");
    if (at::native::resize_output(result, sizes) && !strides.empty())
      result.as_strided_(sizes, strides);
  }
  void set_output_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options) override {
    set_output_raw_strided(i, sizes, strides, options);
  }

 private:
  Results results_;
};

std::tuple<Tensor&, Tensor&, Tensor&> det(const Tensor& a, Tensor& result, Tensor& lu,
                                          Tensor& pivots) {
  Composed<at::native::structured__linalg_det_out, 3> op({&result, &lu, &pivots});
  op.meta(a);
  op.impl(a, result, lu, pivots);
  return {result, lu, pivots};
}

std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> slogdet(const Tensor& a, Tensor& sign,
                                                       Tensor& logarithm, Tensor& lu,
                                                       Tensor& pivots) {
  Composed<at::native::structured__linalg_slogdet_out, 4> op({&sign, &logarithm, &lu, &pivots});
  op.meta(a);
  op.impl(a, sign, logarithm, lu, pivots);
  return {sign, logarithm, lu, pivots};
}

std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> solve(const Tensor& a, const Tensor& b, bool left,
                                                     bool check, Tensor& result, Tensor& lu,
                                                     Tensor& pivots, Tensor& info) {
  Composed<at::native::structured__linalg_solve_ex_out, 4> op({&result, &lu, &pivots, &info});
  op.meta(a, b, left, check);
  op.impl(a, b, left, check, result, lu, pivots, info);
  return {result, lu, pivots, info};
}

std::tuple<Tensor&, Tensor&, Tensor&> lu(const Tensor& a, bool pivot, Tensor& p, Tensor& l,
                                         Tensor& u) {
  Composed<at::native::structured_linalg_lu_out, 3> op({&p, &l, &u});
  op.meta(a, pivot);
  op.impl(a, pivot, p, l, u);
  return {p, l, u};
}

std::tuple<Tensor&, Tensor&> polar(const Tensor& a, Tensor& u, Tensor& h) {
  Composed<at::native::structured_linalg_polar_out, 2> op({&u, &h});
  op.meta(a);
  op.impl(a, u, h);
  return {u, h};
}

// PyTorch composes the drawing of one, and of several that differ; several that may be the same are
// found here.
Tensor& multinomial_out(const Tensor& self, int64_t count, bool replacement,
                        std::optional<at::Generator> generator, Tensor& result) {
  if (!replacement || count <= 1 || self.numel() == 0)
    return at::native::multinomial_out(self, count, replacement, std::move(generator), result);
  TORCH_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(
      self.is_floating_point(),
      "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(result.scalar_type() == at::kLong,
              "multinomial expects Long tensor out, got: ", result.scalar_type());
  TORCH_CHECK(self.min().ge(0).logical_and(self.max().isfinite()).item<bool>(),
              "probability tensor contains either `inf`, `nan` or element < 0");
  const Tensor sums =
      at::cumsum(self.scalar_type() == at::kDouble ? self : self.to(at::kFloat), -1);
  const Tensor all = sums.narrow(-1, sums.size(-1) - 1, 1);
  TORCH_CHECK(all.min().gt(0).item<bool>(),
              "invalid multinomial distribution (sum of probabilities <= 0)");
  std::vector<int64_t> shape(self.sizes().begin(), self.sizes().end());
  shape.back() = count;
  const Tensor places = at::rand(shape, generator, sums.options()).mul_(all);
  const Tensor found = at::searchsorted(sums, places, false, true);
  at::native::resize_output(result, found.sizes());
  return result.copy_(found);
}

Tensor multinomial(const Tensor& self, int64_t count, bool replacement,
                   std::optional<at::Generator> generator) {
  Tensor result = at::empty({0}, self.options().dtype(at::kLong));
  return multinomial_out(self, count, replacement, std::move(generator), result);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("_linalg_det.result", det);
  m.impl("_linalg_slogdet.sign", slogdet);
  m.impl("_linalg_solve_ex.result", solve);
  m.impl("linalg_lu.out", lu);
  m.impl("linalg_polar.out", polar);
  if (!strict()) {
    m.impl("linalg_matrix_sqrth", at::native::linalg_matrix_sqrth);
    m.impl("_native_multi_head_attention", at::native::native_multi_head_attention_cpu);
    m.impl("_transformer_encoder_layer_fwd", at::native::transformer_encoder_layer_forward);
  }
  m.impl("multinomial", multinomial);
  m.impl("multinomial.out", multinomial_out);
}

}  // namespace anymps::aten
