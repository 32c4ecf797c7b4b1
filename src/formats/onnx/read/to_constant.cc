// SPDX-License-Identifier: Apache-2.0
// Tensor -> Constant. Protobuf does not align its bytes, and most weights of a file start at an odd
// address.
#include "formats/constant_bytes.h"
#include "formats/onnx/read/import.h"
#include "memory/string_constant.h"

namespace anymps::onnx {

DType to_dtype(DataType type) {
  static constexpr std::pair<DataType, DType> kTypes[] = {
      {DataType::kFloat, DType::kF32},
      {DataType::kFloat16, DType::kF16},
      {DataType::kBfloat16, DType::kBF16},
      {DataType::kDouble, DType::kF64},
      {DataType::kInt8, DType::kI8},
      {DataType::kInt16, DType::kI16},
      {DataType::kInt32, DType::kI32},
      {DataType::kInt64, DType::kI64},
      {DataType::kUint8, DType::kU8},
      {DataType::kUint16, DType::kU16},
      {DataType::kUint32, DType::kU32},
      {DataType::kUint64, DType::kU64},
      {DataType::kBool, DType::kBool},
      {DataType::kComplex64, DType::kC64},
      {DataType::kInt4, DType::kI4},
      {DataType::kUint4, DType::kU4},
      {DataType::kInt2, DType::kI2},
      {DataType::kUint2, DType::kU2},
      {DataType::kFloat8E4M3FN, DType::kF8E4M3},
      {DataType::kFloat8E5M2, DType::kF8E5M2},
      {DataType::kFloat8E4M3FNUZ, DType::kF8E4M3FNUZ},
      {DataType::kFloat8E5M2FNUZ, DType::kF8E5M2FNUZ},
      {DataType::kFloat8E8M0, DType::kF8E8M0},
      {DataType::kFloat4E2M1, DType::kF4E2M1},
      {DataType::kString, DType::kString},
  };
  for (const auto& [from, to] : kTypes)
    if (from == type) return to;
  fail(Code::kUnsupported, "element type {} is not supported", name(type));
}

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
