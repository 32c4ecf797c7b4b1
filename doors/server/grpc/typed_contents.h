// SPDX-License-Identifier: Apache-2.0
// Tensors that came as typed numbers (InferTensorContents) instead of bytes.
#pragma once

#include <memory>

#include "grpc_service.pb.h"
#include "server/core/request.h"

namespace anymps::server {

// The elements of an input of `message` as bytes: in place where the message holds them as they
// are, else laid together. kInvalidArgument if they are of another type than the input, or do not
// fit it.
Buffer typed_contents(const std::shared_ptr<const inference::ModelInferRequest>& message,
                      const inference::ModelInferRequest::InferInputTensor& input,
                      amps_dtype dtype);

}  // namespace anymps::server
