// SPDX-License-Identifier: Apache-2.0
// The generate extension: a JSON object whose members are inputs of the model (single values or
// flat lists) or parameters; the answer is an object whose members are the outputs.
#pragma once

#include <span>
#include <string>

#include "server/http/infer_codec.h"

namespace anymps::server::http {

// Members that are not inputs become parameters; those of "parameters" count as if they stood
// outside.
void decode_generate(const Buffer& body, std::span<const TensorInfo> inputs, Request& request);

// Outputs, parameters, "id", "model_name" and "model_version", by name; single elements without the
// list.
std::string encode_generate(const Response& response);

}  // namespace anymps::server::http
