// SPDX-License-Identifier: Apache-2.0
// Elements of tensors as JSON: lists of numbers, bools or strings, nested or flat. What is read
// goes straight into memory of the element's type; that memory grows with what the body really
// holds, never with what a shape claims.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/core/request.h"
#include "server/http/json_reader.h"

namespace anymps::server::http {

struct JsonElements {
  Buffer data;  // strings with 4 bytes of length before each
  size_t count = 0;
  size_t outer = 0;  // of a list: its own length; else 1
};

// Reads a list, or a single element. `expected`: how many elements there should be at most. An
// Error names the tensor; half types are refused, as in Triton.
JsonElements read_elements(JsonReader& reader, std::string_view name, amps_dtype dtype,
                           std::optional<size_t> expected);

// Appends "[e,e,...]". kInternal if the buffer is not what type and shape say.
void append_elements(std::string& out, const OutputTensor& tensor);

}  // namespace anymps::server::http
