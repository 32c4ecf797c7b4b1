// SPDX-License-Identifier: Apache-2.0
// The element types that ONNX's ops take and make, at the opset that is written. They come from the
// standard's own schemas: schemas.inc, made by make_schemas.py.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace anymps::onnx {

// Fails (kUnsupported), naming the op and the input, on a type that the op does not take. A type
// that is not known, or of an input that is absent, is not looked at. Gives those of the outputs as
// far as they follow from the inputs. `result`: that of the first one, where an attribute says it.
std::vector<std::optional<DType>> check_types(std::string_view op,
                                              const std::vector<std::optional<DType>>& inputs,
                                              size_t outputs,
                                              std::optional<DType> result = std::nullopt);

}  // namespace anymps::onnx
