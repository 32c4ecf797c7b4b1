// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/addmm_grad_kernel.h>
#include <paddle/phi/kernels/addmm_kernel.h>
#include <paddle/phi/kernels/baddbmm_grad_kernel.h>
#include <paddle/phi/kernels/baddbmm_kernel.h>
#include <paddle/phi/kernels/bilinear_grad_kernel.h>
#include <paddle/phi/kernels/bilinear_kernel.h>
#include <paddle/phi/kernels/bmm_grad_kernel.h>
#include <paddle/phi/kernels/bmm_kernel.h>
#include <paddle/phi/kernels/cholesky_kernel.h>
#include <paddle/phi/kernels/cholesky_solve_kernel.h>
#include <paddle/phi/kernels/cross_grad_kernel.h>
#include <paddle/phi/kernels/cross_kernel.h>
#include <paddle/phi/kernels/determinant_grad_kernel.h>
#include <paddle/phi/kernels/determinant_kernel.h>
#include <paddle/phi/kernels/dist_grad_kernel.h>
#include <paddle/phi/kernels/dist_kernel.h>
#include <paddle/phi/kernels/dot_grad_kernel.h>
#include <paddle/phi/kernels/dot_kernel.h>
#include <paddle/phi/kernels/eigh_kernel.h>
#include <paddle/phi/kernels/eigvalsh_kernel.h>
#include <paddle/phi/kernels/einsum_grad_kernel.h>
#include <paddle/phi/kernels/einsum_kernel.h>
#include <paddle/phi/kernels/inverse_grad_kernel.h>
#include <paddle/phi/kernels/inverse_kernel.h>
#include <paddle/phi/kernels/lu_kernel.h>
#include <paddle/phi/kernels/matmul_grad_kernel.h>
#include <paddle/phi/kernels/matmul_kernel.h>
#include <paddle/phi/kernels/matrix_power_kernel.h>
#include <paddle/phi/kernels/multi_dot_grad_kernel.h>
#include <paddle/phi/kernels/multi_dot_kernel.h>
#include <paddle/phi/kernels/mv_grad_kernel.h>
#include <paddle/phi/kernels/mv_kernel.h>
#include <paddle/phi/kernels/qr_kernel.h>
#include <paddle/phi/kernels/slogdeterminant_kernel.h>
#include <paddle/phi/kernels/solve_grad_kernel.h>
#include <paddle/phi/kernels/solve_kernel.h>
#include <paddle/phi/kernels/svd_kernel.h>
#include <paddle/phi/kernels/svdvals_kernel.h>
#include <paddle/phi/kernels/triangular_solve_grad_kernel.h>
#include <paddle/phi/kernels/triangular_solve_kernel.h>
#include "kernels/declarations.h"
#include "kernels/table.h"

#define FAMILY LinearKernels
#define ROWS "kernels/linear.inc"
#include "kernels/table.inc"
