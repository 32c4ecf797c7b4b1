// SPDX-License-Identifier: Apache-2.0
// Linear attention and its gradients in double, one head after the other.
#include <array>

#include "drivers/reference/dense.h"
#include "ops/layers/linear_attention.h"

namespace anymps {

namespace {

using Vector = std::vector<double>;

// The inputs that the op and its gradient share, as dense numbers.
struct DenseInputs {
  explicit DenseInputs(const ReferenceArgs& args) {
    for (size_t i = 0; i < 6; ++i)
      if (args.has(i)) tensors[i] = read_dense<double>(args.in[i]);
    const auto of = [&](size_t i) { return args.has(i) ? tensors[i].data() : nullptr; };
    in = {of(0), of(1), of(2), of(3), of(4), of(5)};
    std::vector<std::optional<Shape>> shapes(6);
    for (size_t i = 0; i < 6; ++i)
      if (args.has(i)) shapes[i] = args.in[i].shape();
    attention = linear_attention_of(args.attrs, shapes);
  }

  std::array<Vector, 6> tensors;
  LinearAttentionInputs<double> in;
  LinearAttention attention;
};

Vector zeros(int64_t count) { return Vector(count, 0.0); }

}  // namespace

REFERENCE(linear_attention) {
  const DenseInputs inputs(args);
  const LinearAttention& attention = inputs.attention;
  const int64_t heads = attention.batches * attention.heads;
  Vector state = zeros(heads * attention.size()), y = zeros(args.out[0].count()),
         scratch = zeros(attention.forward_scratch());
  for (int64_t i = 0; i < heads; ++i)
    attention.forward(inputs.in, i, state.data() + i * attention.size(), y.data(), scratch.data());
  write_dense(args.out[0], y);
  if (args.out.size() > 1) write_dense(args.out[1], state);
}

REFERENCE(linear_attention_gradient) {
  const DenseInputs inputs(args);
  const LinearAttention& attention = inputs.attention;
  const auto given = [&](size_t i) {
    return args.has(i) ? read_dense<double>(args.in[i]) : Vector();
  };
  const Vector dy = given(6), dstate = given(7);
  std::array<Vector, 6> results;
  for (size_t i = 0; i < 6; ++i) results[i] = zeros(args.out[i].count());
  const auto at = [&](size_t i) { return results[i].data(); };
  const LinearAttentionGradients<double> out{args.has(6) ? dy.data() : nullptr,
                                             args.has(7) ? dstate.data() : nullptr,
                                             at(0),
                                             at(1),
                                             at(2),
                                             at(3),
                                             at(4),
                                             at(5)};
  Vector scratch = zeros(attention.gradient_scratch());
  for (int64_t i = 0; i < attention.batches * attention.heads; ++i)
    attention.gradient(inputs.in, i, out, scratch.data());
  for (size_t i = 0; i < 6; ++i) write_dense(args.out[i], results[i]);
}

}  // namespace anymps
