// SPDX-License-Identifier: Apache-2.0
#include "serving/datatype.h"

#include <array>
#include <iterator>

namespace anymps::serving {
namespace {

// In the order of Triton's numbers, which begin with 1.
struct Named {
  amps_dtype dtype;
  std::string_view name;
};
constexpr std::array kTypes = {
    Named{AMPS_BOOL, "BOOL"},    Named{AMPS_U8, "UINT8"},   Named{AMPS_U16, "UINT16"},
    Named{AMPS_U32, "UINT32"},   Named{AMPS_U64, "UINT64"}, Named{AMPS_I8, "INT8"},
    Named{AMPS_I16, "INT16"},    Named{AMPS_I32, "INT32"},  Named{AMPS_I64, "INT64"},
    Named{AMPS_F16, "FP16"},     Named{AMPS_F32, "FP32"},   Named{AMPS_F64, "FP64"},
    Named{AMPS_STRING, "BYTES"}, Named{AMPS_BF16, "BF16"}};
constexpr std::string_view kPrefix = "TYPE_";

}  // namespace

std::string_view datatype_name(amps_dtype dtype) {
  for (const Named& type : kTypes)
    if (type.dtype == dtype) return type.name;
  return "";
}

std::optional<amps_dtype> parse_datatype(std::string_view name) {
  for (const Named& type : kTypes)
    if (type.name == name) return type.dtype;
  return std::nullopt;
}

std::string config_datatype(amps_dtype dtype) {
  const std::string_view name = dtype == AMPS_STRING ? "STRING" : datatype_name(dtype);
  return name.empty() ? "" : std::string(kPrefix).append(name);
}

std::optional<amps_dtype> parse_config_datatype(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  return name == "STRING" ? AMPS_STRING : name == "BYTES" ? std::nullopt : parse_datatype(name);
}

std::optional<amps_dtype> numbered_datatype(int number) {
  if (number < 1 || number > std::ssize(kTypes)) return std::nullopt;
  return kTypes[number - 1].dtype;
}

int datatype_number(amps_dtype dtype) {
  for (int i = 0; i < std::ssize(kTypes); ++i)
    if (kTypes[i].dtype == dtype) return i + 1;
  return 0;
}

std::optional<int64_t> element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  return count;
}

std::optional<size_t> byte_count(amps_dtype dtype, std::span<const int64_t> shape) {
  const std::optional<int64_t> count = element_count(shape);
  int64_t bytes = 0;  // no memory is larger
  if (dtype == AMPS_STRING || !count ||
      __builtin_mul_overflow(*count, amps_dtype_size(dtype), &bytes))
    return std::nullopt;
  return bytes;
}

std::optional<size_t> least_bytes(amps_dtype dtype, std::span<const int64_t> shape) {
  return byte_count(dtype == AMPS_STRING ? AMPS_U32 : dtype, shape);  // its length
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t extent : shape)
    text.append(text.size() > 1 ? "," : "").append(std::to_string(extent));
  return text + "]";
}

}  // namespace anymps::serving
