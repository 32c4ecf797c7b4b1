// SPDX-License-Identifier: Apache-2.0
// What kernels ask of a convolution that go over dense images with the channels last, with weights
// that are packed once.
#pragma once

#include <fmt/format.h>

#include <string>

#include "drivers/kernel.h"

namespace anymps::cpu {

// Up to so many spatial axes; f32 throughout.
inline bool are_dense_images(const KernelRequest& request, size_t most_axes, std::string& why) {
  const TensorDesc &x = request.in(0), &w = request.in(1);
  if (request.attrs.s("layout") != "channels_last")
    return refuse<bool>(why, "channels are not last");
  if (x.shape.size() < 3 || x.shape.size() > 2 + most_axes)
    return refuse<bool>(why, fmt::format("{} spatial axes", x.shape.size() - 2));
  if (!request.constant(1) || !request.packed || request.attrs.s("weights_layout") == "*IO" ||
      !w.contiguous())
    return refuse<bool>(why, "the weights are not constant, or lie otherwise");
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (!request.has(i)) continue;
    if (request.in(i).dtype != DType::kF32)
      return refuse<bool>(why, fmt::format("dtype {}", name(request.in(i).dtype)));
    if (!request.in(i).contiguous())
      return refuse<bool>(why, fmt::format("strides of input {}", i));
  }
  return true;
}

}  // namespace anymps::cpu
