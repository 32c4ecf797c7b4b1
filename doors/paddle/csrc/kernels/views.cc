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
#define ROWS "kernels/views.inc"
#include "kernels/table.inc"
