// SPDX-License-Identifier: Apache-2.0
// Which function converts which ONNX op: one table a family, next to its functions.
#pragma once

#include <span>
#include <string_view>

#include "formats/onnx/read/call.h"

namespace anymps::onnx {

using Convert = Values (*)(Call&);

struct Converter {
  std::string_view op;  // with its domain, unless that is ONNX's own: "com.microsoft.Attention"
  Convert convert = nullptr;
  // Set instead of `convert` where an op of the table has the same inputs and no attributes.
  const char* same_as = nullptr;

  Converter(std::string_view op, Convert convert) : op(op), convert(convert) {}
  Converter(std::string_view op, const char* same_as) : op(op), same_as(same_as) {}
};

const Converter* find_converter(std::string_view domain, std::string_view op);  // null: none
const Converter* custom_converter(std::string_view name);  // of an op of the user's own, or null

// The families.
std::span<const Converter> attention_converters();
std::span<const Converter> bitwise_converters();
std::span<const Converter> cast_converters();
std::span<const Converter> constant_converters();
std::span<const Converter> contrib_attention_converters();
std::span<const Converter> contrib_converters();
std::span<const Converter> data_converters();
std::span<const Converter> linalg_converters();
std::span<const Converter> loss_converters();
std::span<const Converter> math_converters();
std::span<const Converter> ml_converters();
std::span<const Converter> ml_map_converters();
std::span<const Converter> ml_svm_converters();
std::span<const Converter> ml_tree_converters();
std::span<const Converter> nn_converters();
std::span<const Converter> random_converters();
std::span<const Converter> quantization_contrib_converters();
std::span<const Converter> quantization_converters();
std::span<const Converter> rnn_converters();
std::span<const Converter> reduction_converters();
std::span<const Converter> resize_converters();
std::span<const Converter> sequence_converters();
std::span<const Converter> scatter_converters();
std::span<const Converter> shape_converters();
std::span<const Converter> sort_converters();
std::span<const Converter> training_converters();
std::span<const Converter> signal_converters();
std::span<const Converter> vision_converters();
std::span<const Converter> string_converters();

}  // namespace anymps::onnx
