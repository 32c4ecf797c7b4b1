// SPDX-License-Identifier: Apache-2.0
// The ops of torchvision's library, which has kernels for MPS on a Mac and brings those for the CPU
// here: detection models call them in the middle of their forward pass. They are no ops of PyTorch,
// so they cannot be rows; torchvision's own kernels compute them, on the tensors' own memory. It
// may be imported later, or never.
#include <ATen/core/Tensor.h>
#include <torch/library.h>
#include "kernels/fallback.h"

namespace anymps::aten {

namespace {

// A region of interest begins with the number of its image, which torchvision goes by unseen.
void check_regions(const at::Tensor& regions, int64_t images) {
  if (regions.dim() != 2 || regions.size(1) == 0) return;
  const at::Tensor number = regions.select(1, 0);
  TORCH_CHECK(number.ge(0).logical_and(number.lt(images)).all().item<bool>(),
              "a region is of an image that is not among the ", images, " that are given");
}

void by_torchvision(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const auto given = torch::jit::last(*stack, arguments.size());
  at::Tensor regions;
  std::optional<int64_t> images;
  for (size_t i = 0; i < given.size(); ++i) {
    if (arguments[i].name() == "batch_size") images = given[i].toInt();
    if (!given[i].isTensor() || !given[i].toTensor().defined()) continue;
    const at::Tensor& tensor = given[i].toTensor();
    TORCH_CHECK(tensor.device().is_mps(),
                "Expected all tensors to be on the same device, but found at least two devices, "
                "mps:0 and ",
                tensor.device(), "! (when checking arguments of ", op.schema().name(), ")");
    if (arguments[i].name() == "rois") regions = tensor;
    if (arguments[i].name() == "input" && tensor.dim() > 0) images = tensor.size(0);
  }
  if (regions.defined() && images) check_regions(regions, *images);
  run_on_cpu(op, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(torchvision, MPS, m) {
  for (const char* name :
       {"nms", "roi_align", "_roi_align_backward", "roi_pool", "_roi_pool_backward", "ps_roi_align",
        "_ps_roi_align_backward", "ps_roi_pool", "_ps_roi_pool_backward", "deform_conv2d",
        "_deform_conv2d_backward"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&by_torchvision>());
}

}  // namespace anymps::aten
