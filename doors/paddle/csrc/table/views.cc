// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/diagonal_grad_kernel.h>
#include <paddle/phi/kernels/diagonal_kernel.h>
#include <paddle/phi/kernels/slice_grad_kernel.h>
#include <paddle/phi/kernels/slice_kernel.h>
#include <paddle/phi/kernels/squeeze_grad_kernel.h>
#include <paddle/phi/kernels/squeeze_kernel.h>
#include <paddle/phi/kernels/strided_slice_grad_kernel.h>
#include <paddle/phi/kernels/strided_slice_kernel.h>
#include <paddle/phi/kernels/transpose_grad_kernel.h>
#include <paddle/phi/kernels/transpose_kernel.h>
#include <paddle/phi/kernels/unbind_kernel.h>
#include <paddle/phi/kernels/unsqueeze_grad_kernel.h>
#include <paddle/phi/kernels/unsqueeze_kernel.h>
#include "kernels/table.h"

#define FAMILY ViewKernels
#define ROWS "table/views.inc"
#include "table/table.inc"

namespace anymps::paddle {

namespace {

// Where ops run one by one Paddle would make a view for this gradient, and it adds a second
// gradient of a leaf to the first as if both were flat memory in the same order (blas_axpby). So it
// is a copy, whose strides Paddle leaves to the kernel.
void transpose_grad(const phi::CustomContext& context, const DenseTensor& dout,
                    const std::vector<int>& perm, DenseTensor* dx) {
  phi::DenseTensorMeta meta = dx->meta();
  meta.strides = phi::DenseTensorMeta::calc_strides(meta.dims);
  dx->set_meta(meta);
  using Signature = decltype(&phi::TransposeGradKernel<float, phi::CustomContext>);
  Boxed<ViewKernels, ViewKernels::k_transpose_grad, Signature>::run(context, dout, perm, dx);
}

const bool kGradientsWithoutViews = [] {
  register_kernels(
      {entry<&transpose_grad>(ViewKernels::row(ViewKernels::k_transpose_grad), kNumbers)},
      phi::DataLayout::STRIDED);
  return true;
}();

}  // namespace

}  // namespace anymps::paddle
