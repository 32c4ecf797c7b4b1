// SPDX-License-Identifier: Apache-2.0
// Copies of elements between any two layouts of one shape: how views become dense, and all that
// shape ops do when they cannot be views. Prepared once, run with pointers.
#pragma once

#include "drivers/cpu/common/loops.h"

namespace anymps::cpu {

class StridedCopy {
 public:
  StridedCopy(size_t element, const Shape& shape, const Strides& to, const Strides& from);
  void run(void* to, const void* from) const;  // pointers to element [0, …, 0]

 private:
  void run_rows(char* to, const char* from, int64_t begin, int64_t end) const;
  void run_row(char* to, const char* from) const;
  void run_blocks(char* to, const char* from, int64_t begin, int64_t end) const;
  void run_block(char* to, const char* from, int64_t first) const;

  enum class Mode { kDense, kRows, kTranspose };
  Mode mode_ = Mode::kRows;
  int64_t element_;
  Loops outer_;  // operands: to, from
  int64_t columns_ = 1, to_column_ = 1, from_column_ = 1;
  int64_t rows_ = 1, to_row_ = 0;  // of a transposition; `from` is dense along its rows
  // A transposition of a few planes to pixels, and of pixels to planes.
  bool interleaves_ = false, separates_ = false;
  int64_t block_ = 1;  // rows and columns of a block of a transposition
  int64_t blocks_ = 1, units_ = 0;
  double unit_ns_ = 0;
};

}  // namespace anymps::cpu
