// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/cholesky_grad_kernel.h>
#include <paddle/phi/kernels/cholesky_kernel.h>
#include <paddle/phi/kernels/cholesky_solve_grad_kernel.h>
#include <paddle/phi/kernels/cholesky_solve_kernel.h>
#include <paddle/phi/kernels/determinant_grad_kernel.h>
#include <paddle/phi/kernels/determinant_kernel.h>
#include <paddle/phi/kernels/eig_grad_kernel.h>
#include <paddle/phi/kernels/eig_kernel.h>
#include <paddle/phi/kernels/eigh_grad_kernel.h>
#include <paddle/phi/kernels/eigh_kernel.h>
#include <paddle/phi/kernels/eigvals_kernel.h>
#include <paddle/phi/kernels/eigvalsh_grad_kernel.h>
#include <paddle/phi/kernels/eigvalsh_kernel.h>
#include <paddle/phi/kernels/inverse_grad_kernel.h>
#include <paddle/phi/kernels/inverse_kernel.h>
#include <paddle/phi/kernels/lstsq_kernel.h>
#include <paddle/phi/kernels/lu_grad_kernel.h>
#include <paddle/phi/kernels/lu_kernel.h>
#include <paddle/phi/kernels/lu_solve_grad_kernel.h>
#include <paddle/phi/kernels/lu_solve_kernel.h>
#include <paddle/phi/kernels/lu_unpack_grad_kernel.h>
#include <paddle/phi/kernels/lu_unpack_kernel.h>
#include <paddle/phi/kernels/matrix_power_grad_kernel.h>
#include <paddle/phi/kernels/matrix_power_kernel.h>
#include <paddle/phi/kernels/matrix_rank_kernel.h>
#include <paddle/phi/kernels/matrix_rank_tol_kernel.h>
#include <paddle/phi/kernels/qr_grad_kernel.h>
#include <paddle/phi/kernels/qr_kernel.h>
#include <paddle/phi/kernels/slogdeterminant_grad_kernel.h>
#include <paddle/phi/kernels/slogdeterminant_kernel.h>
#include <paddle/phi/kernels/solve_grad_kernel.h>
#include <paddle/phi/kernels/solve_kernel.h>
#include <paddle/phi/kernels/svd_grad_kernel.h>
#include <paddle/phi/kernels/svd_kernel.h>
#include <paddle/phi/kernels/svdvals_grad_kernel.h>
#include <paddle/phi/kernels/svdvals_kernel.h>
#include <paddle/phi/kernels/triangular_solve_grad_kernel.h>
#include <paddle/phi/kernels/triangular_solve_kernel.h>
#include "kernels/table.h"

#define FAMILY DecompositionKernels
#define ROWS "table/decomposition.inc"
#include "table/table.inc"
