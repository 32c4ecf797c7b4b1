// SPDX-License-Identifier: Apache-2.0
#include <paddle/phi/kernels/box_coder_kernel.h>
#include <paddle/phi/kernels/distribute_fpn_proposals_kernel.h>
#include <paddle/phi/kernels/generate_proposals_kernel.h>
#include <paddle/phi/kernels/matrix_nms_kernel.h>
#include <paddle/phi/kernels/multiclass_nms3_kernel.h>
#include <paddle/phi/kernels/nms_kernel.h>
#include <paddle/phi/kernels/prior_box_kernel.h>
#include <paddle/phi/kernels/roi_align_grad_kernel.h>
#include <paddle/phi/kernels/roi_align_kernel.h>
#include <paddle/phi/kernels/roi_pool_grad_kernel.h>
#include <paddle/phi/kernels/roi_pool_kernel.h>
#include <paddle/phi/kernels/yolo_box_kernel.h>
#include <paddle/phi/kernels/yolo_loss_grad_kernel.h>
#include <paddle/phi/kernels/yolo_loss_kernel.h>
#include "kernels/table.h"

#define FAMILY VisionKernels
#define ROWS "table/vision.inc"
#include "table/table.inc"
