// SPDX-License-Identifier: Apache-2.0
// ONNX's element types beside the engine's: numbers, names and widths, for reader and writer alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/dtype.h"

namespace anymps::onnx {

// TensorProto.DataType; the numbers are those of the file format.
enum class DataType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
  kFloat6E2M3 = 27,
  kFloat6E3M2 = 28,
};

// "FLOAT", "INT64", …; "type 99" for a number that ONNX does not define.
std::string name(DataType type);
std::optional<DataType> data_type_named(std::string_view name);
// Bits of one element; 0 for strings and for undefined types.
int bit_width(DataType type);

// Both fail (kUnsupported) where the other side has no such type.
DType to_dtype(DataType type);
DataType to_data_type(DType dtype);

}  // namespace anymps::onnx
