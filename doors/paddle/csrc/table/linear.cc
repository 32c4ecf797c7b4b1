// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/addmm_grad_kernel.h>
#include <paddle/phi/kernels/addmm_kernel.h>
#include <paddle/phi/kernels/baddbmm_grad_kernel.h>
#include <paddle/phi/kernels/baddbmm_kernel.h>
#include <paddle/phi/kernels/bilinear_grad_kernel.h>
#include <paddle/phi/kernels/bilinear_kernel.h>
#include <paddle/phi/kernels/bmm_grad_kernel.h>
#include <paddle/phi/kernels/bmm_kernel.h>
#include <paddle/phi/kernels/cross_grad_kernel.h>
#include <paddle/phi/kernels/cross_kernel.h>
#include <paddle/phi/kernels/dist_grad_kernel.h>
#include <paddle/phi/kernels/dist_kernel.h>
#include <paddle/phi/kernels/dot_grad_kernel.h>
#include <paddle/phi/kernels/dot_kernel.h>
#include <paddle/phi/kernels/einsum_grad_kernel.h>
#include <paddle/phi/kernels/einsum_kernel.h>
#include <paddle/phi/kernels/matmul_grad_kernel.h>
#include <paddle/phi/kernels/matmul_kernel.h>
#include <paddle/phi/kernels/multi_dot_grad_kernel.h>
#include <paddle/phi/kernels/multi_dot_kernel.h>
#include <paddle/phi/kernels/mv_grad_kernel.h>
#include <paddle/phi/kernels/mv_kernel.h>
#include "kernels/table.h"
#include "table/declarations.h"

#define FAMILY LinearKernels
#define ROWS "table/linear.inc"
#include "table/table.inc"
