// SPDX-License-Identifier: Apache-2.0
// Losses whose arguments a row of the table cannot take: lists of lengths, which are other numbers
// at every call, as tensors.
#include <ATen/ops/_ctc_loss.h>
#include <ATen/ops/_ctc_loss_backward.h>
#include <ATen/ops/tensor.h>
#include <torch/library.h>

namespace anymps::aten {

namespace {

using at::IntArrayRef;
using at::Tensor;

Tensor numbers(IntArrayRef list) { return at::tensor(list, at::kLong); }

std::tuple<Tensor, Tensor> ctc_loss(const Tensor& log_probs, const Tensor& targets,
                                    IntArrayRef inputs, IntArrayRef labels, int64_t blank,
                                    bool zero_infinity) {
  return at::_ctc_loss(log_probs, targets, numbers(inputs), numbers(labels), blank, zero_infinity);
}

Tensor ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                         IntArrayRef inputs, IntArrayRef labels, const Tensor& loss,
                         const Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  return at::_ctc_loss_backward(grad, log_probs, targets, numbers(inputs), numbers(labels), loss,
                                log_alpha, blank, zero_infinity);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("_ctc_loss", ctc_loss);
  m.impl("_ctc_loss_backward", ctc_loss_backward);
}

}  // namespace anymps::aten
