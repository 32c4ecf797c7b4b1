// SPDX-License-Identifier: Apache-2.0
// Kernels that make an image a few rows at a time, from a few rows of their first input, wherever
// these lie: what a chain is made of (layers/row_chain.h).
#pragma once

#include "drivers/kernel.h"

namespace anymps::cpu {

// A dense image, or several.
struct RowShape {
  int64_t images = 0, rows = 0, floats = 0;  // rows of an image, floats of a row
};

struct RowRange {
  int64_t first = 0, last = 0;  // without the last
  int64_t count() const { return last - first; }
};

class RowKernel : public Kernel {
 public:
  // Without images where the kernel cannot go by rows.
  virtual RowShape result_rows() const = 0;
  // Without images where input 0 can only be read where it is.
  virtual RowShape input_rows() const = 0;
  virtual double flops() const = 0;  // of all rows
  // The rows of an image of input 0 that these of the result are made of. Neither end goes back
  // where the range moves on.
  virtual RowRange under(RowRange rows) const = 0;
  // Makes rows of one image on the calling thread. `x` is that image's row `x_first`; null: input 0
  // is where it is. `y` is where the first of the rows goes. All other inputs are in `args`, for
  // all images.
  virtual void run_rows(const KernelArgs& args, int64_t image, RowRange rows, const float* x,
                        int64_t x_first, float* y) const = 0;
};

}  // namespace anymps::cpu
