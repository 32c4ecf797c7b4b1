// SPDX-License-Identifier: Apache-2.0
#include "kernels/elements.h"

#include <ATen/Dispatch.h>

namespace anymps::aten {

namespace {

using at::Tensor;

// Memory is the host's: it is read as it lies there.
template <class Holds>
bool all(const Tensor& tensor, const Holds& holds) {
  const Tensor plain = tensor.contiguous();
  bool found = true;
  AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, plain.scalar_type(), "elements",
                             [&] {
                               const scalar_t* x = plain.const_data_ptr<scalar_t>();
                               for (int64_t i = 0; i < plain.numel(); ++i)
                                 found &= holds(static_cast<double>(x[i]));
                             });
  return found;
}

}  // namespace

void check_probabilities(const Tensor& tensor, const char* name) {
  TORCH_CHECK(all(tensor, [](double p) { return (p >= 0) & (p <= 1); }), "[", name,
              "] all elements of input should be between 0 and 1");
}

void check_not_negative(const Tensor& tensor, const char* name) {
  TORCH_CHECK(all(tensor, [](double x) { return x >= 0; }), "[", name,
              "] expects all elements to be non-negative");
}

void check_held(at::ScalarType type, const at::Scalar& number) {
  switch (type) {
#define HELD(cpp, torch)                 \
  case at::ScalarType::torch:            \
    static_cast<void>(number.to<cpp>()); \
    return;
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(HELD)
#undef HELD
    default:
      return;
  }
}

void check_held(at::ScalarType type, const Tensor& number, const char* name) {
  TORCH_CHECK(number.dim() == 0, "[", name,
              "] only supports a 0-dimensional value tensor, but got tensor with ", number.dim(),
              " dimension(s).");
  if (number.scalar_type() != type) check_held(type, number.item());
}

}  // namespace anymps::aten
