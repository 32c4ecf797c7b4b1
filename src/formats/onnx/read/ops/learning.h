// SPDX-License-Identifier: Apache-2.0
// What the converters of ai.onnx.ml share: labels of classes and the transforms after the scores.
#pragma once

#include "formats/onnx/read/call.h"

namespace anymps::onnx {

// Models compute in f32, unless they are given doubles.
Value* as_float(Call& c, Value* x);
// A row is a matrix of one.
Value* matrix(Call& c, Value* x);
// An attribute's numbers; none where it is missing.
std::vector<double> numbers_of(Call& c, const char* attribute);
// A vector of constants.
Value* float_list(Call& c, DType dtype, const std::vector<double>& numbers);

// The attribute post_transform on scores [N, C].
Value* transformed(Call& c, Value* scores, const std::string& how);

// The labels of the classes, integers or strings, as a vector; null where there are none.
Value* class_labels(Call& c, const char* integers, const char* strings);
// The label of the class that `index` (i64 [N]) names.
Value* label_of(Call& c, Value* labels, Value* index);

}  // namespace anymps::onnx
