// SPDX-License-Identifier: Apache-2.0
#include "runtime/eager/channels_last.h"

#include <algorithm>
#include <set>
#include <string_view>

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

// Ops whose images all lie as the attribute `layout` says: inputs and outputs of the rank of input
// 0.
bool has_images_throughout(const Op& op) {
  static const std::set<std::string_view> kGradients = {
      "batch_norm_training", "batch_norm_training_gradient", "avg_pool_gradient",
      "adaptive_avg_pool_gradient", "max_pool_gradient"};
  return op.layout == LayoutRule::kLayout || kGradients.contains(op.name);
}

// A tensor of this rank with its channels moved; false: it lies in another way.
bool move_image(TensorDesc& desc, int64_t rank) {
  if (desc.rank() != rank) return true;
  if (!is_image(desc)) return false;
  desc = channels_moved(desc);
  return true;
}

bool move_images(KernelRequest& request) {
  const int64_t rank = request.in(0).rank();
  const bool convolution = request.op->layout == LayoutRule::kConvolution;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const bool weights = convolution && i != 0 && i != 3;
    if (request.has(i) && !weights && !move_image(*request.inputs[i], rank)) return false;
  }
  return std::ranges::all_of(request.outputs,
                             [&](TensorDesc& desc) { return move_image(desc, rank); });
}

}  // namespace

bool choose_channels_last(PreparedCall& call) {
  KernelRequest& request = call.request;
  const Op& op = *request.op;
  if (op.layout != LayoutRule::kConvolution && !has_images_throughout(op)) return false;
  // Positions that max_pool gives are counted in the channels-first tensor.
  const bool places = op.attr_index("indices") >= 0 && request.outputs.size() > 1;
  if (places || request.attrs.s("layout") != "channels_first") return false;
  const KernelRequest before = request;
  request.attrs.set({"layout", "channels_last"});
  if (move_images(request)) {
    call.choose();
    if (!call.choice->is_fallback) return true;
  }
  request = before;
  return false;
}

}  // namespace anymps
