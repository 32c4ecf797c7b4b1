// SPDX-License-Identifier: Apache-2.0
// The innermost part of resizing, vector by vector: sums of whole lines, of pixels with many
// channels, and of single elements, which are picked out of a vector by their places in it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace anymps::cpu {

// What the outputs along an axis are made of: output j of the taps from first[j] to first[j + 1].
struct AxisTaps {
  int64_t in = 1, out = 0;
  std::vector<int64_t> first{0}, indices;
  std::vector<float> weights;
  int64_t same = 0;  // how many, if all outputs have as many; else 0

  int64_t count(int64_t j) const { return first[j + 1] - first[j]; }
};

// A row of single elements in blocks of a vector of outputs, each of `taps` elements of the row.
// Those of one tap come from one vector, so outputs must not lie further apart than their sources.
struct PickedRow {
  int64_t taps = 0, size = 0;           // size: outputs
  int64_t reads = 0;                    // elements of the source, with what is read behind them
  std::vector<int64_t> outputs, bases;  // the first of each block; of the vectors: [block][tap]
  std::vector<int32_t> places;          // [block][tap][lane]: in its vector
  std::vector<float> weights;           // the same

  bool empty() const { return outputs.empty(); }
};

int64_t resize_lanes();  // of a vector

// The row of elements that `taps` describe, `inner` of them for each; empty where it cannot be.
PickedRow make_picked(const AxisTaps& taps, int64_t inner);

// How rows [line.out, inner] are made: each of a line [line.in, inner], which is a sum of some of
// lines.in, or where there are none, lies in x as it is.
struct ResizePlan {
  AxisTaps lines, line;  // lines.out is 0: none
  int64_t inner = 1;
  PickedRow picked;  // of the line, if it can be made so and pixels do not fill vectors

  int64_t line_size() const { return line.in * inner; }
  int64_t buffer() const { return std::max(line_size(), picked.reads); }
};
// Rows of y from `begin` to `end`; `buffer` has room for plan.buffer() floats.
void run_resize(const ResizePlan& plan, const float* x, int64_t begin, int64_t end, float* buffer,
                float* y);

// One tap and no weights, for elements of any kind of 4 bytes: `rows` equal rows that follow each
// other.
void copy_picked(const PickedRow& row, const void* from, int64_t rows, void* to);

}  // namespace anymps::cpu
