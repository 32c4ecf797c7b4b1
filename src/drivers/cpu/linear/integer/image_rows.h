// SPDX-License-Identifier: Apache-2.0
// The rows that a convolution of bytes with the channels last multiplies: one for each place of the
// result, with what lies under its window. A row is read in runs, for the pixels under one line of
// the window lie side by side: in the image itself, or, where the window reaches over the border or
// numbers are to be words of another kind, in a copy of the lines under some places, which is made
// once for all taps.
#pragma once

#include <vector>

#include "drivers/cpu/linear/int_gemm.h"
#include "drivers/cpu/linear/integer/image_window.h"

namespace anymps::cpu {

// Where some rows begin, and where the runs begin in each of them.
struct PlacedRows {
  const uint8_t* from = nullptr;
  std::vector<int64_t> at, runs;
  std::vector<uint8_t> copy;  // of a part of the image, if it is read there
};

class ImageRows {
 public:
  ImageWindow window;
  IntPacking packing;
  DType dtype = DType::kU8;
  int64_t groups = 1, channels = 1;  // of a group

  // After these are set: how the image is read.
  void plan();
  bool in_place() const { return in_place_; }

  int64_t rows() const { return window.places(); }
  int64_t all_channels() const { return groups * channels; }
  int64_t depth() const { return window.count() * channels; }
  bool flips() const;  // i8 become u8

  // Runs are whole words: what fills them up is not zero, so that weights must be.
  int64_t run_taps() const { return run_taps_; }
  int64_t runs() const { return window.count() / run_taps_; }
  int64_t run_depth() const { return run_taps_ * channels; }
  int64_t run_words() const { return packing.words(run_depth()); }

  // The rows [row, row + count) of a group's channels, which begin at x. `zero`: of the border.
  void place(const uint8_t* x, int64_t row, int64_t count, int zero, PlacedRows& to) const;
  // What their elements sum up to, less as many times `zero`.
  void sum(const PlacedRows& rows, int64_t count, int zero, int32_t* sums) const;

 private:
  // A box of the image: of its pixels, or of a copy's.
  struct Part {
    int64_t image = 0;
    Triple first{}, size{};
  };
  struct Place {
    int64_t image = 0;
    Triple at{};
  };

  bool in_place_ = false;
  int64_t run_taps_ = 1;

  int64_t element() const { return packing.bytes ? 1 : 2; }
  Place place_of(int64_t row) const;
  bool is_read(int64_t line) const;
  void place_runs(const Triple& size, bool planes_of_taps, int64_t pixel, int64_t* runs) const;
  void place_copies(const uint8_t* x, int64_t row, int64_t count, int zero, PlacedRows& to) const;
  void copy_part(const uint8_t* x, const Part& part, int64_t lines, int zero, uint8_t* to) const;
  uint8_t* copy_pixels(const uint8_t* from, int64_t count, uint8_t* to) const;
  uint8_t* fill_pixels(int64_t count, int zero, uint8_t* to) const;
};

}  // namespace anymps::cpu
