// SPDX-License-Identifier: Apache-2.0
// A convolution as tiles of pixels that share the weights under them: what is the same for all of
// its rows. A transposed convolution is one too: pixels of the result that lie a stride apart meet
// the same weights, and each such phase is a convolution over the image.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "drivers/cpu/layers/direct/tiles_simd.h"
#include "drivers/kernel.h"

namespace anymps::cpu::direct {

// Pixels of a row under which the same taps lie in the image.
struct Span {
  int64_t pixels = 0;
  int64_t x = 0;                // the first tap of the first pixel, from the begin of a row of x
  int64_t first = 0, taps = 0;  // which taps: `first` is the number of the first
  int64_t y = 0;                // the first pixel's columns, from the begin of a row of y
  int64_t begin = 0, end = 0;   // the columns that are there: of pixels at a border not all may be
  int64_t part = 0;             // of the row, which several threads may share
};

// Columns that belong together: channels of a group, in the pixels of a phase.
struct Phase {
  int64_t columns = 0;
  int64_t channel = 0;  // of y, of the first column
  std::vector<Span> spans;
};

struct Rows {
  int64_t batch = 1, out_rows = 1;
  bool copies_x = false;                         // x is made dense first
  int64_t x_image = 0, y_row = 0;                // elements
  int64_t x_step = 0, y_step = 0;                // from a pixel of a span to the next
  int64_t channels = 0;                          // of y: columns are some of these, again and again
  int64_t kernel_rows = 1, taps = 1, depth = 0;  // depth: elements of a tap, side by side
  int64_t tap_step = 0;                          // from a tap to the next, in x
  // The rows of an image under a row of the result, and the rows of the kernel that they meet.
  struct Under {
    int64_t x, kernel_row;
  };
  std::vector<std::vector<Under>> under;
  std::vector<int64_t> order;  // in which rows of the result follow each other: like ones together
  std::vector<Phase> phases;
  TileActivation activation;

  // Where the weight of a column lies for the first element of a tap; nothing: it is 0.
  std::function<std::optional<int64_t>(size_t phase, int64_t column, int64_t kernel_row,
                                       int64_t tap)>
      weight;
  int64_t weight_step = 0;  // along the depth
};

// Whether a kernel can be made for the request: tiles can be run here, all is f32, the activation
// is one of theirs, weights are constant and dense, y has channels last.
bool can_go_by_rows(const KernelRequest& request, std::string& why);
// `name` tells the layout of the weights from those of other plans for the same op.
KernelPtr make_rows_kernel(const KernelRequest& request, Rows rows, const std::string& name,
                           std::string& why);

}  // namespace anymps::cpu::direct
