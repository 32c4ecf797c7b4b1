// SPDX-License-Identifier: Apache-2.0
// Names and widths of ONNX's types.
#include "formats/onnx/schema/model.h"

#include <fmt/format.h>

namespace anymps::onnx {

namespace {

struct TypeFacts {
  const char* name;
  int bits;
};

// Indexed by DataType.
constexpr TypeFacts kTypes[] = {
    {"UNDEFINED", 0},      {"FLOAT", 32},       {"UINT8", 8},          {"INT8", 8},
    {"UINT16", 16},        {"INT16", 16},       {"INT32", 32},         {"INT64", 64},
    {"STRING", 0},         {"BOOL", 8},         {"FLOAT16", 16},       {"DOUBLE", 64},
    {"UINT32", 32},        {"UINT64", 64},      {"COMPLEX64", 64},     {"COMPLEX128", 128},
    {"BFLOAT16", 16},      {"FLOAT8E4M3FN", 8}, {"FLOAT8E4M3FNUZ", 8}, {"FLOAT8E5M2", 8},
    {"FLOAT8E5M2FNUZ", 8}, {"UINT4", 4},        {"INT4", 4},           {"FLOAT4E2M1", 4},
    {"FLOAT8E8M0", 8},     {"UINT2", 2},        {"INT2", 2},           {"FLOAT6E2M3", 6},
    {"FLOAT6E3M2", 6},
};

constexpr const char* kAttributeTypes[] = {
    "UNDEFINED",      "FLOAT",      "INT",         "STRING",  "TENSOR", "GRAPH",
    "FLOATS",         "INTS",       "STRINGS",     "TENSORS", "GRAPHS", "SPARSE_TENSOR",
    "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS",
};

}  // namespace

std::string name(DataType type) {
  auto index = static_cast<uint32_t>(type);
  return index < std::size(kTypes) ? kTypes[index].name
                                   : fmt::format("type {}", static_cast<int32_t>(type));
}

int bit_width(DataType type) {
  auto index = static_cast<uint32_t>(type);
  return index < std::size(kTypes) ? kTypes[index].bits : 0;
}

std::string name(Attribute::Type type) {
  auto index = static_cast<uint32_t>(type);
  return index < std::size(kAttributeTypes) ? kAttributeTypes[index]
                                            : fmt::format("type {}", static_cast<int32_t>(type));
}

}  // namespace anymps::onnx
