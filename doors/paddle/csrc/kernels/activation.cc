// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/abs_grad_kernel.h>
#include <paddle/phi/kernels/abs_kernel.h>
#include <paddle/phi/kernels/activation_grad_kernel.h>
#include <paddle/phi/kernels/activation_kernel.h>
#include <paddle/phi/kernels/bitwise_kernel.h>
#include <paddle/phi/kernels/clip_grad_kernel.h>
#include <paddle/phi/kernels/clip_kernel.h>
#include <paddle/phi/kernels/digamma_grad_kernel.h>
#include <paddle/phi/kernels/digamma_kernel.h>
#include <paddle/phi/kernels/erf_grad_kernel.h>
#include <paddle/phi/kernels/erf_kernel.h>
#include <paddle/phi/kernels/erfinv_grad_kernel.h>
#include <paddle/phi/kernels/erfinv_kernel.h>
#include <paddle/phi/kernels/gammaln_grad_kernel.h>
#include <paddle/phi/kernels/gammaln_kernel.h>
#include <paddle/phi/kernels/gelu_grad_kernel.h>
#include <paddle/phi/kernels/gelu_kernel.h>
#include <paddle/phi/kernels/i0_grad_kernel.h>
#include <paddle/phi/kernels/i0_kernel.h>
#include <paddle/phi/kernels/i0e_grad_kernel.h>
#include <paddle/phi/kernels/i0e_kernel.h>
#include <paddle/phi/kernels/i1_grad_kernel.h>
#include <paddle/phi/kernels/i1_kernel.h>
#include <paddle/phi/kernels/i1e_grad_kernel.h>
#include <paddle/phi/kernels/i1e_kernel.h>
#include <paddle/phi/kernels/increment_kernel.h>
#include <paddle/phi/kernels/isfinite_kernel.h>
#include <paddle/phi/kernels/lgamma_grad_kernel.h>
#include <paddle/phi/kernels/lgamma_kernel.h>
#include <paddle/phi/kernels/logical_kernel.h>
#include <paddle/phi/kernels/polygamma_grad_kernel.h>
#include <paddle/phi/kernels/polygamma_kernel.h>
#include <paddle/phi/kernels/scale_kernel.h>
#include <paddle/phi/kernels/selected_rows/activation_kernel.h>
#include <paddle/phi/kernels/selu_grad_kernel.h>
#include <paddle/phi/kernels/selu_kernel.h>
#include <paddle/phi/kernels/sign_kernel.h>
#include <paddle/phi/kernels/trunc_grad_kernel.h>
#include <paddle/phi/kernels/trunc_kernel.h>
#include "kernels/table.h"

#define FAMILY ActivationKernels
#define ROWS "kernels/activation.inc"
#include "kernels/table.inc"
