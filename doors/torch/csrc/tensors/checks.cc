// SPDX-License-Identifier: Apache-2.0
// Checks of elements, and streams, of which there is one.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>
#include "device/allocator.h"

namespace anymps::aten {

namespace {

using at::Tensor;

void assert_text(const Tensor& self, std::string_view text) {
  const int64_t count = self.numel();
  TORCH_CHECK(count != 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(count < 2, "Boolean value of Tensor with more than one value is ambiguous");
  TORCH_CHECK(self.is_nonzero(), text.empty() ? "Assertion is failed" : text);
}

void assert_plain(const Tensor& self) { assert_text(self, ""); }

Tensor assert_token(const Tensor& self, std::string_view text, const Tensor& token) {
  assert_text(self, text);
  return token.clone();
}

Tensor make_token(std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                  std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat>) {
  return at::empty({}, at::TensorOptions(kDevice).dtype(dtype));
}

// All work is done when a call returns, so memory is never in use by a stream behind its owner's
// back.
void record_stream(Tensor&, c10::Stream) {}

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("_assert_async", assert_plain);
  m.impl("_assert_async.msg", assert_text);
  m.impl("_functional_assert_async.msg", assert_token);
  m.impl("_make_dep_token", make_token);
  m.impl("record_stream", record_stream);
}

}  // namespace anymps::aten
