// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/add_n_kernel.h>
#include <paddle/phi/kernels/allclose_kernel.h>
#include <paddle/phi/kernels/atan2_grad_kernel.h>
#include <paddle/phi/kernels/atan2_kernel.h>
#include <paddle/phi/kernels/bitwise_kernel.h>
#include <paddle/phi/kernels/compare_kernel.h>
#include <paddle/phi/kernels/elementwise_add_grad_kernel.h>
#include <paddle/phi/kernels/elementwise_add_kernel.h>
#include <paddle/phi/kernels/elementwise_divide_grad_kernel.h>
#include <paddle/phi/kernels/elementwise_divide_kernel.h>
#include <paddle/phi/kernels/elementwise_grad_kernel.h>
#include <paddle/phi/kernels/elementwise_kernel.h>
#include <paddle/phi/kernels/elementwise_multiply_grad_kernel.h>
#include <paddle/phi/kernels/elementwise_multiply_kernel.h>
#include <paddle/phi/kernels/elementwise_subtract_grad_kernel.h>
#include <paddle/phi/kernels/elementwise_subtract_kernel.h>
#include <paddle/phi/kernels/gammaincc_grad_kernel.h>
#include <paddle/phi/kernels/gammaincc_kernel.h>
#include <paddle/phi/kernels/isclose_kernel.h>
#include <paddle/phi/kernels/lerp_grad_kernel.h>
#include <paddle/phi/kernels/lerp_kernel.h>
#include <paddle/phi/kernels/logical_kernel.h>
#include <paddle/phi/kernels/masked_fill_grad_kernel.h>
#include <paddle/phi/kernels/masked_fill_kernel.h>
#include <paddle/phi/kernels/where_grad_kernel.h>
#include <paddle/phi/kernels/where_kernel.h>
#include "kernels/table.h"

#define FAMILY BinaryKernels
#define ROWS "table/binary.inc"
#include "table/table.inc"
