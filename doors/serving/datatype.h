// SPDX-License-Identifier: Apache-2.0
// Triton's data types: "FP32" in requests, "TYPE_FP32" in configs, a number in messages and in the
// backend's interface; the engine's strings are "BYTES" there, "TYPE_STRING" here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "anymps/anymps.h"

namespace anymps::serving {

// "" and nullopt for types that the protocol does not have.
std::string_view datatype_name(amps_dtype dtype);                 // "FP32"
std::optional<amps_dtype> parse_datatype(std::string_view name);  // of "FP32"
std::string config_datatype(amps_dtype dtype);                    // "TYPE_FP32"
std::optional<amps_dtype> parse_config_datatype(std::string_view name);
std::optional<amps_dtype> numbered_datatype(int number);
int datatype_number(amps_dtype dtype);  // 0 for types that the protocol does not have

// The elements of a shape; nullopt if an extent is negative or the product does not fit.
std::optional<int64_t> element_count(std::span<const int64_t> shape);
// The bytes of a tensor of this type and shape; nullopt for strings, negative extents and overflow.
std::optional<size_t> byte_count(amps_dtype dtype, std::span<const int64_t> shape);

// The same, but that of strings it is the bytes of as many empty ones: the least that they take.
std::optional<size_t> least_bytes(amps_dtype dtype, std::span<const int64_t> shape);

std::string shape_text(std::span<const int64_t> shape);  // "[1,3,224,224]"

// Calls fn.operator()<T>() with the C++ type of the elements. False for those that are not numbers
// in C++: bools, half floats, strings, complex numbers.
template <typename Fn>
bool with_number_type(amps_dtype dtype, Fn&& fn) {
  const auto with = [&]<typename T>() {
    fn.template operator()<T>();
    return true;
  };
  switch (dtype) {
    case AMPS_U8:
      return with.template operator()<uint8_t>();
    case AMPS_U16:
      return with.template operator()<uint16_t>();
    case AMPS_U32:
      return with.template operator()<uint32_t>();
    case AMPS_U64:
      return with.template operator()<uint64_t>();
    case AMPS_I8:
      return with.template operator()<int8_t>();
    case AMPS_I16:
      return with.template operator()<int16_t>();
    case AMPS_I32:
      return with.template operator()<int32_t>();
    case AMPS_I64:
      return with.template operator()<int64_t>();
    case AMPS_F32:
      return with.template operator()<float>();
    case AMPS_F64:
      return with.template operator()<double>();
    default:
      return false;
  }
}

}  // namespace anymps::serving
