// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/abs_grad_kernel.h>
#include <paddle/phi/kernels/activation_grad_kernel.h>
#include <paddle/phi/kernels/conv_grad_kernel.h>
#include <paddle/phi/kernels/elementwise_add_grad_kernel.h>
#include <paddle/phi/kernels/elementwise_divide_grad_kernel.h>
#include <paddle/phi/kernels/elementwise_multiply_grad_kernel.h>
#include <paddle/phi/kernels/elementwise_subtract_grad_kernel.h>
#include <paddle/phi/kernels/instance_norm_grad_kernel.h>
#include <paddle/phi/kernels/matmul_grad_kernel.h>
#include <paddle/phi/kernels/pool_grad_kernel.h>
#include "kernels/table.h"
#include "table/declarations.h"

#define FAMILY DoubleGradientKernels
#define ROWS "table/double_gradient.inc"
#include "table/table.inc"
