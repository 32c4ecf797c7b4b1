// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/accuracy_kernel.h>
#include <paddle/phi/kernels/bce_loss_grad_kernel.h>
#include <paddle/phi/kernels/bce_loss_kernel.h>
#include <paddle/phi/kernels/cross_entropy_grad_kernel.h>
#include <paddle/phi/kernels/cross_entropy_kernel.h>
#include <paddle/phi/kernels/hsigmoid_loss_grad_kernel.h>
#include <paddle/phi/kernels/hsigmoid_loss_kernel.h>
#include <paddle/phi/kernels/huber_loss_grad_kernel.h>
#include <paddle/phi/kernels/huber_loss_kernel.h>
#include <paddle/phi/kernels/identity_loss_grad_kernel.h>
#include <paddle/phi/kernels/identity_loss_kernel.h>
#include <paddle/phi/kernels/kldiv_loss_grad_kernel.h>
#include <paddle/phi/kernels/kldiv_loss_kernel.h>
#include <paddle/phi/kernels/label_smooth_grad_kernel.h>
#include <paddle/phi/kernels/label_smooth_kernel.h>
#include <paddle/phi/kernels/log_loss_grad_kernel.h>
#include <paddle/phi/kernels/log_loss_kernel.h>
#include <paddle/phi/kernels/nll_loss_grad_kernel.h>
#include <paddle/phi/kernels/nll_loss_kernel.h>
#include <paddle/phi/kernels/sigmoid_cross_entropy_with_logits_grad_kernel.h>
#include <paddle/phi/kernels/sigmoid_cross_entropy_with_logits_kernel.h>
#include <paddle/phi/kernels/warpctc_grad_kernel.h>
#include <paddle/phi/kernels/warpctc_kernel.h>
#include "kernels/table.h"

#define FAMILY LossKernels
#define ROWS "table/loss.inc"
#include "table/table.inc"
