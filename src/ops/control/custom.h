// SPDX-License-Identifier: Apache-2.0
// The user's own ops: functions that are registered at run time under the name that they have in
// ONNX files, "domain.Op". In graphs they are nodes of the op `custom`, which calls them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace anymps {

struct CustomTensor {
  bool present = false;  // an optional input may be left out
  DType dtype = DType::kF32;
  // While shapes are inferred, extents that are not known are negative; equal numbers mean equal
  // extents, in what `infer` answers too.
  std::vector<int64_t> dims;
  void* data = nullptr;  // contiguous; null while shapes are inferred
};

struct CustomCall {
  std::string node;
  std::vector<CustomTensor> inputs, outputs;
  NamedAttrs attrs;
};

// Both throw Error for what they cannot do. `infer` fills in dtype and dims of the outputs; `run`
// their elements. Thread-safe and without a state: equal inputs give equal outputs.
struct CustomOp {
  std::string name;
  std::function<void(CustomCall&)> infer, run;
};

void register_custom_op(CustomOp op);  // fails if there is one of this name
std::shared_ptr<const CustomOp> find_custom_op(std::string_view name);  // null: none
const CustomOp& get_custom_op(std::string_view name);                   // fails; lives forever

// Attributes as the text that a node keeps.
std::string encode_custom_attrs(const NamedAttrs& attrs);
NamedAttrs decode_custom_attrs(const std::string& text);

}  // namespace anymps
