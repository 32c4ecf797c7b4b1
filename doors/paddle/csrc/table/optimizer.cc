// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/adadelta_kernel.h>
#include <paddle/phi/kernels/adagrad_kernel.h>
#include <paddle/phi/kernels/adam_kernel.h>
#include <paddle/phi/kernels/adamax_kernel.h>
#include <paddle/phi/kernels/adamw_kernel.h>
#include <paddle/phi/kernels/amp_kernel.h>
#include <paddle/phi/kernels/asgd_kernel.h>
#include <paddle/phi/kernels/average_accumulates_kernel.h>
#include <paddle/phi/kernels/lamb_kernel.h>
#include <paddle/phi/kernels/merged_momentum_kernel.h>
#include <paddle/phi/kernels/momentum_kernel.h>
#include <paddle/phi/kernels/nadam_kernel.h>
#include <paddle/phi/kernels/radam_kernel.h>
#include <paddle/phi/kernels/rmsprop_kernel.h>
#include <paddle/phi/kernels/rprop_kernel.h>
#include <paddle/phi/kernels/selected_rows/adam_kernel.h>
#include <paddle/phi/kernels/sgd_kernel.h>
#include "kernels/table.h"

#define FAMILY OptimizerKernels
#define ROWS "table/optimizer.inc"
#include "table/table.inc"
