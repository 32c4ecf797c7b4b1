// SPDX-License-Identifier: Apache-2.0
// TensorProto -> Tensor. ONNX has eight fields in which the elements may lie; all of them come out
// as one: the bytes of raw_data.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "formats/onnx/read/external_data.h"
#include "formats/onnx/schema/model.h"
#include "formats/onnx/schema/wire.h"

namespace anymps::onnx {

struct TensorContext {
  std::shared_ptr<const void> owner;  // of the bytes that are parsed
  bool mapped;                        // they are a mapped file
  ExternalFiles* files;
};

// Both throw WireError and protozero's exceptions.
std::pair<std::string_view, std::string_view> read_entry(std::string_view bytes);  // key and value
Tensor read_tensor(std::string_view bytes, const TensorContext& context);

}  // namespace anymps::onnx
