// SPDX-License-Identifier: Apache-2.0
#include "runtime/eager/channels_last.h"

namespace anymps {

namespace {

// The same memory with the channels as the last axis.
TensorDesc channels_moved(const TensorDesc& desc) {
  TensorDesc moved = desc;
  const size_t last = desc.shape.size() - 1;
  for (size_t axis = 1; axis < last; ++axis) {
    moved.shape[axis] = desc.shape[axis + 1];
    moved.strides[axis] = desc.strides[axis + 1];
  }
  moved.shape[last] = desc.shape[1];
  moved.strides[last] = desc.strides[1];
  return moved;
}

bool is_image(const TensorDesc& desc) {
  return desc.rank() >= 3 && !desc.contiguous() && channels_moved(desc).contiguous();
}

}  // namespace

bool choose_channels_last(PreparedCall& call) {
  KernelRequest& request = call.request;
  const LayoutRule rule = request.op->layout;
  if (rule != LayoutRule::kConvolution && rule != LayoutRule::kLayout) return false;
  // Positions that max_pool gives are counted in the channels-first tensor.
  if (request.outputs.size() != 1 || request.attrs.s("layout") != "channels_first") return false;
  const size_t residual = rule == LayoutRule::kConvolution ? 3 : 0;
  for (const size_t i : {size_t{0}, residual})
    if (request.has(i) && !is_image(request.in(i))) return false;
  if (!is_image(request.out())) return false;
  const KernelRequest before = request;
  request.attrs.set({"layout", "channels_last"});
  request.inputs[0] = channels_moved(before.in(0));
  if (residual && request.has(residual))
    request.inputs[residual] = channels_moved(before.in(residual));
  request.outputs[0] = channels_moved(before.out());
  call.choose();
  if (!call.choice->is_fallback) return true;
  request = before;
  return false;
}

}  // namespace anymps
