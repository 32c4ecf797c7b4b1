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
#include "common/number_type.h"

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

using common::with_number_type;

}  // namespace anymps::serving
