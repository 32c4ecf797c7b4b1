// SPDX-License-Identifier: Apache-2.0
// Tensor -> Constant. Protobuf does not align its bytes, and most weights of a file start at an odd
// address.
#include "formats/constant_bytes.h"
#include "formats/onnx/read/import.h"
#include "memory/string_constant.h"

namespace anymps::onnx {

ConstantPtr to_constant(const Tensor& tensor) {
  const DType dtype = to_dtype(tensor.type);
  Shape shape(tensor.dims.begin(), tensor.dims.end());
  const std::string_view data = tensor.data;
  if (dtype == DType::kString)
    return string_constant(std::move(shape), {tensor.strings.begin(), tensor.strings.end()});
  if (const int bits = bit_width(tensor.type); bits < 8)
    return packed_constant_from(dtype, shape, bits, data, tensor.owner);
  return constant_from(dtype, shape, data, tensor.owner, tensor.mapped);
}

}  // namespace anymps::onnx
