// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/schema/data_type.h"

#include <iterator>

#include "base/error.h"

namespace anymps::onnx {

namespace {

struct DataTypeRow {
  DataType type;
  const char* name;
  int bits;
  std::optional<DType> dtype;
};

constexpr auto kNoDType = std::nullopt;

// A row's place is its number.
constexpr DataTypeRow kDataTypes[] = {
    {DataType::kUndefined, "UNDEFINED", 0, kNoDType},
    {DataType::kFloat, "FLOAT", 32, DType::kF32},
    {DataType::kUint8, "UINT8", 8, DType::kU8},
    {DataType::kInt8, "INT8", 8, DType::kI8},
    {DataType::kUint16, "UINT16", 16, DType::kU16},
    {DataType::kInt16, "INT16", 16, DType::kI16},
    {DataType::kInt32, "INT32", 32, DType::kI32},
    {DataType::kInt64, "INT64", 64, DType::kI64},
    {DataType::kString, "STRING", 0, DType::kString},
    {DataType::kBool, "BOOL", 8, DType::kBool},
    {DataType::kFloat16, "FLOAT16", 16, DType::kF16},
    {DataType::kDouble, "DOUBLE", 64, DType::kF64},
    {DataType::kUint32, "UINT32", 32, DType::kU32},
    {DataType::kUint64, "UINT64", 64, DType::kU64},
    {DataType::kComplex64, "COMPLEX64", 64, DType::kC64},
    {DataType::kComplex128, "COMPLEX128", 128, DType::kC128},
    {DataType::kBfloat16, "BFLOAT16", 16, DType::kBF16},
    {DataType::kFloat8E4M3FN, "FLOAT8E4M3FN", 8, DType::kF8E4M3},
    {DataType::kFloat8E4M3FNUZ, "FLOAT8E4M3FNUZ", 8, DType::kF8E4M3FNUZ},
    {DataType::kFloat8E5M2, "FLOAT8E5M2", 8, DType::kF8E5M2},
    {DataType::kFloat8E5M2FNUZ, "FLOAT8E5M2FNUZ", 8, DType::kF8E5M2FNUZ},
    {DataType::kUint4, "UINT4", 4, DType::kU4},
    {DataType::kInt4, "INT4", 4, DType::kI4},
    {DataType::kFloat4E2M1, "FLOAT4E2M1", 4, DType::kF4E2M1},
    {DataType::kFloat8E8M0, "FLOAT8E8M0", 8, DType::kF8E8M0},
    {DataType::kUint2, "UINT2", 2, DType::kU2},
    {DataType::kInt2, "INT2", 2, DType::kI2},
    {DataType::kFloat6E2M3, "FLOAT6E2M3", 6, kNoDType},
    {DataType::kFloat6E3M2, "FLOAT6E3M2", 6, kNoDType},
};

constexpr bool rows_are_in_place() {
  for (size_t i = 0; i < std::size(kDataTypes); ++i)
    if (static_cast<size_t>(kDataTypes[i].type) != i) return false;
  return true;
}
static_assert(rows_are_in_place());

const DataTypeRow* row_of(DataType type) {
  const auto index = static_cast<uint32_t>(type);
  return index < std::size(kDataTypes) ? &kDataTypes[index] : nullptr;
}

}  // namespace

std::string name(DataType type) {
  const DataTypeRow* row = row_of(type);
  return row ? row->name : fmt::format("type {}", static_cast<int32_t>(type));
}

std::optional<DataType> data_type_named(std::string_view name) {
  for (const DataTypeRow& row : kDataTypes)
    if (name == row.name) return row.type;
  return std::nullopt;
}

int bit_width(DataType type) {
  const DataTypeRow* row = row_of(type);
  return row ? row->bits : 0;
}

DType to_dtype(DataType type) {
  const DataTypeRow* row = row_of(type);
  if (!row || !row->dtype) fail(Code::kUnsupported, "element type {} is not supported", name(type));
  return *row->dtype;
}

DataType to_data_type(DType dtype) {
  for (const DataTypeRow& row : kDataTypes)
    if (row.dtype == dtype) return row.type;
  fail(Code::kUnsupported, "ONNX has no type {}", anymps::name(dtype));
}

}  // namespace anymps::onnx
