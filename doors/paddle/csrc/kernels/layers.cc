// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/affine_grid_grad_kernel.h>
#include <paddle/phi/kernels/affine_grid_kernel.h>
#include <paddle/phi/kernels/batch_norm_grad_kernel.h>
#include <paddle/phi/kernels/batch_norm_kernel.h>
#include <paddle/phi/kernels/channel_shuffle_grad_kernel.h>
#include <paddle/phi/kernels/channel_shuffle_kernel.h>
#include <paddle/phi/kernels/conv_grad_kernel.h>
#include <paddle/phi/kernels/conv_kernel.h>
#include <paddle/phi/kernels/conv_transpose_grad_kernel.h>
#include <paddle/phi/kernels/conv_transpose_kernel.h>
#include <paddle/phi/kernels/deformable_conv_kernel.h>
#include <paddle/phi/kernels/embedding_grad_kernel.h>
#include <paddle/phi/kernels/embedding_kernel.h>
#include <paddle/phi/kernels/fused_softmax_mask_grad_kernel.h>
#include <paddle/phi/kernels/fused_softmax_mask_kernel.h>
#include <paddle/phi/kernels/grid_sample_grad_kernel.h>
#include <paddle/phi/kernels/grid_sample_kernel.h>
#include <paddle/phi/kernels/group_norm_grad_kernel.h>
#include <paddle/phi/kernels/group_norm_kernel.h>
#include <paddle/phi/kernels/instance_norm_grad_kernel.h>
#include <paddle/phi/kernels/instance_norm_kernel.h>
#include <paddle/phi/kernels/interpolate_grad_kernel.h>
#include <paddle/phi/kernels/interpolate_kernel.h>
#include <paddle/phi/kernels/layer_norm_grad_kernel.h>
#include <paddle/phi/kernels/layer_norm_kernel.h>
#include <paddle/phi/kernels/log_softmax_grad_kernel.h>
#include <paddle/phi/kernels/log_softmax_kernel.h>
#include <paddle/phi/kernels/norm_kernel.h>
#include <paddle/phi/kernels/pool_grad_kernel.h>
#include <paddle/phi/kernels/pool_kernel.h>
#include <paddle/phi/kernels/prelu_grad_kernel.h>
#include <paddle/phi/kernels/prelu_kernel.h>
#include <paddle/phi/kernels/rnn_grad_kernel.h>
#include <paddle/phi/kernels/rnn_kernel.h>
#include <paddle/phi/kernels/softmax_grad_kernel.h>
#include <paddle/phi/kernels/softmax_kernel.h>
#include <paddle/phi/kernels/swiglu_grad_kernel.h>
#include <paddle/phi/kernels/swiglu_kernel.h>
#include "kernels/table.h"

#define FAMILY LayersKernels
#define ROWS "kernels/layers.inc"
#include "kernels/table.inc"
