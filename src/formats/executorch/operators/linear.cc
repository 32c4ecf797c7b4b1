// SPDX-License-Identifier: Apache-2.0
// Matrix products, attention, distances and Fourier transforms of torch.
#include <cmath>

#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

Value* product(KernelArguments& c, Value* a, Value* b) {
  const DType dtype = common_dtype({a, b});
  return c.add("matmul", {c.cast(a, dtype), c.cast(b, dtype)});
}

Values matmul(KernelArguments& c) { return {product(c, c.tensor(0), c.tensor(1))}; }

Values linear(KernelArguments& c) {
  return {c.add("matmul", {c.tensor(0), c.tensor(1), c.maybe_tensor(2)}, {{"transpose_b", true}})};
}

// beta * self + alpha * (a @ b); with beta 0 self is not read, be it NaN.
Values addmm(KernelArguments& c) {
  const bool shifted = c.f(3) != 0, plain = c.f(3) == 1 && c.f(4) == 1;
  if (plain) return {c.add("matmul", {c.tensor(1), c.tensor(2), c.tensor(0)})};
  const DType wide = wide_dtype(c.out());
  Value* y = product(c, c.cast(c.tensor(1), wide), c.cast(c.tensor(2), wide));
  if (c.f(4) != 1) y = c.add("mul", {y, c.number(4, wide)});
  if (!shifted) return {y};
  Value* bias = c.cast(c.tensor(0), wide);
  if (c.f(3) != 1) bias = c.add("mul", {bias, c.number(3, wide)});
  return {c.add("add", {y, bias})};
}

// (query, key, value, dropout_p, is_causal, attn_mask, scale) and the logarithms of the sums, which
// only a gradient needs.
Values attention(KernelArguments& c) {
  if (c.f(3) != 0) c.unsupported("dropout of {}", c.f(3));
  Value* mask = c.maybe_tensor(5);
  if (mask && mask->dtype() != DType::kBool) mask = c.cast(mask, c.tensor(0)->dtype());
  Values inputs = {c.tensor(0), c.tensor(1), c.tensor(2)};
  if (mask) inputs.push_back(mask);
  Values results(c.results().size(), nullptr);
  results[0] = c.add("sdpa", inputs, {{"causal", c.b(4)}, {"scale", c.maybe_f(6).value_or(0)}});
  return results;
}

// The p-norm of the last axis.
Value* distance(KernelArguments& c, Value* difference, double p) {
  const auto over = [&](const char* op, Value* x) {
    return c.add(op, {x}, {{"axes", Ints{-1}}, {"keep_dims", false}});
  };
  if (p == 2) return over("reduce_l2", difference);
  Value* size = c.add("abs", {difference});
  if (p == 1) return over("reduce_sum", size);
  if (std::isinf(p)) {
    // Of no elements: 0, which is no larger than any distance.
    if (known_extent(c, size, -1) == 0) return over("reduce_sum", size);
    return over("reduce_max", size);
  }
  if (p == 0)
    return over("reduce_sum", c.cast(with_scalar(c, "not_equal", size, 0), size->dtype()));
  return with_scalar(c, "pow", over("reduce_sum", with_scalar(c, "pow", size, p)), 1 / p);
}

Value* distances(KernelArguments& c, Value* a, Value* b, double p) {
  c.check(p >= 0, "p is {}", p);
  const DType wide = wide_dtype(a->dtype());
  Value* rows = unsqueeze(c, c.cast(a, wide), {c.rank(a) - 1});
  Value* columns = unsqueeze(c, c.cast(b, wide), {c.rank(b) - 2});
  return distance(c, c.add("sub", {rows, columns}), p);
}

// compute_mode only tells how to compute it.
Values cdist(KernelArguments& c) {
  Value *a = c.tensor(0), *b = c.tensor(1);
  c.check(c.rank(a) >= 2 && c.rank(b) >= 2, "points of rank {} and {}", c.rank(a), c.rank(b));
  return {distances(c, a, b, c.f(2))};
}

constexpr int64_t kMaxPoints = 2048;  // the pairs are listed

// Of every pair of rows once.
Values pdist(KernelArguments& c) {
  Value* x = c.tensor(0);
  c.check(c.rank(x) == 2, "points of rank {}", c.rank(x));
  const int64_t count = known_extent(c, x, 0);
  if (count > kMaxPoints) c.unsupported("{} points are more than {}", count, kMaxPoints);
  Value *first = nullptr, *second = nullptr;
  Ints lower, upper;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = i + 1; j < count; ++j) lower.push_back(i), upper.push_back(j);
  const Ints shape = {std::ssize(lower)};
  x = c.cast(x, wide_dtype(x->dtype()));
  first = c.add("gather", {x, constant_ints(c, lower, shape)}, {{"axis", 0}});
  second = c.add("gather", {x, constant_ints(c, upper, shape)}, {{"axis", 0}});
  return {distance(c, c.add("sub", {first, second}), c.f(1))};
}

// torch's numbers: 0 none, 1 the root of the count, 2 the count.
std::string scaling(KernelArguments& c, int64_t normalization) {
  static const char* kScalings[] = {"none", "unitary", "size"};
  c.check(normalization >= 0 && normalization < 3, "normalization {} is not known", normalization);
  return kScalings[normalization];
}

Values fft_r2c(KernelArguments& c) {
  Value* x = c.tensor(0);
  const NamedAttrs attrs = {{"axes", c.axes(1, x)}, {"scaling", scaling(c, c.i(2))}};
  return {c.add(c.b(3) ? "real_to_hermitean_fft" : "fft", {x}, attrs)};
}

// The inverse transform; the last axis is cut to the bins that its new length needs.
Values fft_c2r(KernelArguments& c) {
  Value* x = c.tensor(0);
  const Ints axes = c.axes(1, x);
  c.check(!axes.empty(), "there are no axes");
  const int64_t length = c.i(3), bins = length / 2 + 1;
  const int64_t given = known_extent(c, x, axes.back());
  c.check(length > 0, "the last axis would have {} elements", length);
  if (given > bins) x = slice(c, x, axes.back(), 0, bins);
  if (given < bins) c.unsupported("{} bins for {} elements, {} are needed", given, length, bins);
  return {c.add("hermitean_to_real_fft", {x},
                {{"axes", axes},
                 {"inverse", true},
                 {"scaling", scaling(c, c.i(2))},
                 {"round_to_odd", length % 2 == 1}})};
}

Values fft_c2c(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {c.add("fft", {x},
                {{"axes", c.axes(1, x)}, {"scaling", scaling(c, c.i(2))}, {"inverse", !c.b(3)}})};
}

const KernelConverters kAtenLinalg{
    {"aten::_cdist_forward.out", cdist},
    {"aten::_fft_c2c.out", fft_c2c},
    {"aten::_fft_c2r.out", fft_c2r},
    {"aten::_fft_r2c.out", fft_r2c},
    {"aten::_pdist_forward.out", pdist},
    {"aten::_scaled_dot_product_flash_attention_for_cpu.out", attention},
    {{"aten::addmm.out", "aten::baddbmm.out"}, addmm},
    {{"aten::bmm.out", "aten::matmul.out", "aten::mm.out"}, matmul},
    {"aten::linear.out", linear},
};

}  // namespace

}  // namespace anymps::executorch
