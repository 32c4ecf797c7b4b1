// SPDX-License-Identifier: Apache-2.0
// Exact products of small integers: 16-bit operands (bytes less their zero points), 32-bit sums.
// The right operand lies in panels of kIntPanel columns; in a panel, two rows alternate element by
// element, which is how the processor multiplies and adds pairs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anymps::cpu {

inline constexpr int64_t kIntPanel = 32;

inline int64_t even(int64_t depth) { return (depth + 1) / 2 * 2; }
inline size_t panel_elements(int64_t depth) { return even(depth) * kIntPanel; }
// Where the element of row k and column j of a panel lies.
inline int64_t panel_place(int64_t k, int64_t j) { return k / 2 * 2 * kIntPanel + 2 * j + k % 2; }

// y[i][j] = sum over k of a[i][k] * panel[k][j], wrapping. Rows of a are `depth` apart, which is
// even; a row or column that only fills up is zero. Only `columns` columns of y are written.
struct PanelProduct {
  const int16_t* a = nullptr;
  const int16_t* panel = nullptr;
  int32_t* y = nullptr;
  int64_t rows = 0, depth = 0, columns = 0, y_row = 0;
};
void multiply_panel(const PanelProduct& product);

}  // namespace anymps::cpu
