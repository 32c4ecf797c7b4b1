// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/arange_kernel.h>
#include <paddle/phi/kernels/assign_kernel.h>
#include <paddle/phi/kernels/bernoulli_kernel.h>
#include <paddle/phi/kernels/binomial_kernel.h>
#include <paddle/phi/kernels/dirichlet_kernel.h>
#include <paddle/phi/kernels/dropout_grad_kernel.h>
#include <paddle/phi/kernels/dropout_kernel.h>
#include <paddle/phi/kernels/empty_kernel.h>
#include <paddle/phi/kernels/exponential_kernel.h>
#include <paddle/phi/kernels/eye_kernel.h>
#include <paddle/phi/kernels/fill_grad_kernel.h>
#include <paddle/phi/kernels/fill_kernel.h>
#include <paddle/phi/kernels/full_kernel.h>
#include <paddle/phi/kernels/gaussian_inplace_grad_kernel.h>
#include <paddle/phi/kernels/gaussian_kernel.h>
#include <paddle/phi/kernels/linspace_kernel.h>
#include <paddle/phi/kernels/logspace_kernel.h>
#include <paddle/phi/kernels/multinomial_kernel.h>
#include <paddle/phi/kernels/poisson_grad_kernel.h>
#include <paddle/phi/kernels/poisson_kernel.h>
#include <paddle/phi/kernels/randint_kernel.h>
#include <paddle/phi/kernels/random_grad_kernel.h>
#include <paddle/phi/kernels/random_kernel.h>
#include <paddle/phi/kernels/randperm_kernel.h>
#include <paddle/phi/kernels/range_kernel.h>
#include <paddle/phi/kernels/standard_gamma_kernel.h>
#include <paddle/phi/kernels/tril_indices_kernel.h>
#include <paddle/phi/kernels/triu_indices_kernel.h>
#include <paddle/phi/kernels/truncated_gaussian_random_kernel.h>
#include <paddle/phi/kernels/uniform_inplace_grad_kernel.h>
#include <paddle/phi/kernels/uniform_inplace_kernel.h>
#include <paddle/phi/kernels/uniform_kernel.h>
#include "kernels/table.h"

#define FAMILY CreationKernels
#define ROWS "table/creation.inc"
#include "table/table.inc"
