// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/fake_dequantize_kernel.h>
#include <paddle/phi/kernels/fake_quantize_grad_kernel.h>
#include <paddle/phi/kernels/fake_quantize_kernel.h>
#include "kernels/table.h"
#include "table/declarations.h"

#define FAMILY QuantizationKernels
#define ROWS "table/quantization.inc"
#include "table/table.inc"
