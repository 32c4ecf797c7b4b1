// SPDX-License-Identifier: Apache-2.0
// ValueInfoProto and TypeProto -> ValueInfo: the type of a value, as deep as the engine's types go.
#pragma once

#include <string_view>

#include "formats/onnx/schema/model.h"
#include "formats/onnx/schema/wire.h"

namespace anymps::onnx {

// Both throw WireError and protozero's exceptions.
void read_value_info(std::string_view bytes, WirePath& path, ValueInfo& info);
void read_type(std::string_view bytes, WirePath& path, ValueInfo& info);  // all but the name

}  // namespace anymps::onnx
