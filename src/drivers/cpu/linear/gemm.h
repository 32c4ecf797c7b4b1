// SPDX-License-Identifier: Apache-2.0
// Products of rows with constant or few weights, without oneDNN: 1x1 convolutions and matmuls of
// models with many small layers, for which making oneDNN's primitives takes longer than a run, and
// small products of eager calls, which take less time than oneDNN needs to start.
#pragma once

#include "drivers/cpu/common/tile_activation.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

// y[rows, columns] = activation(x[rows, depth] * w[depth, columns] + bias + residual), all f32.
// x is input 0, w is input 1. Rows of x, y and residual are dense inside.
struct Gemm {
  int64_t rows = 0, depth = 0, columns = 0;
  int64_t x_row = 0, y_row = 0;  // strides of the rows
  // Where x skips rows of an image: so many rows lie x_row apart, so many runs of them x_run, and
  // then comes the next image. 0: all rows are one run.
  int64_t run = 0, runs = 1, x_run = 0, x_image = 0;
  // Where rows are the pixels of dense images, which then may be made a few lines at a time: how
  // many images, and lines of each. 0: they are not.
  int64_t images = 0, lines = 0;
  int64_t w_depth = 0, w_column = 0;
  std::optional<size_t> bias, residual;  // numbers of the inputs: [columns], and like y
  TileActivation activation;
  bool packs_at_run = false;  // a w that is not constant, if it is small
};

// Null, with the reason, where oneDNN does it better.
KernelPtr make_gemm(const KernelRequest& request, const Gemm& gemm, std::string& why);

}  // namespace anymps::cpu
