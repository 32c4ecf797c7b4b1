// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <array>

namespace anymps {

namespace {
struct Entry {
  const char* name;
  const char* long_name;
  size_t size;
};
constexpr std::array<Entry, kDTypeCount> kEntries = {{
    {"f32", "float32", 4},
    {"f16", "float16", 2},
    {"bf16", "bfloat16", 2},
    {"f64", "float64", 8},
    {"i8", "int8", 1},
    {"i16", "int16", 2},
    {"i32", "int32", 4},
    {"i64", "int64", 8},
    {"u8", "uint8", 1},
    {"u16", "uint16", 2},
    {"u32", "uint32", 4},
    {"u64", "uint64", 8},
    {"bool", "boolean", 1},
    {"c64", "complex64", 8},
    {"i4", "int4", 1},
    {"u4", "uint4", 1},
    {"i2", "int2", 1},
    {"u2", "uint2", 1},
    {"f8e4m3", "float8_e4m3fn", 1},
    {"f8e5m2", "float8_e5m2", 1},
    {"f8e4m3fnuz", "float8_e4m3fnuz", 1},
    {"f8e5m2fnuz", "float8_e5m2fnuz", 1},
    {"f8e8m0", "float8_e8m0fnu", 1},
    {"f4e2m1", "float4_e2m1fn", 1},
    {"string", "str", 8},
    {"c128", "complex128", 16},
}};
}  // namespace

const char* name(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  return index < kEntries.size() ? kEntries[index].name : "invalid";
}

size_t size_of(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  require(index < kEntries.size(), "[dtype] {} is not a dtype", index);
  return kEntries[index].size;
}

DType parse_dtype(std::string_view text) {
  for (size_t i = 0; i < kEntries.size(); ++i)
    if (text == kEntries[i].name || text == kEntries[i].long_name) return static_cast<DType>(i);
  fail(Code::kInvalidArgument, "[dtype] '{}' is not a dtype; known are {}", text,
       to_string(kEvery));
}

std::string to_string(DTypeSet set) {
  std::string text;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (!contains(set, static_cast<DType>(i))) continue;
    if (!text.empty()) text += ", ";
    text += kEntries[i].name;
  }
  return "{" + text + "}";
}

}  // namespace anymps
