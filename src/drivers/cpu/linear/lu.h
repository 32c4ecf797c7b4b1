// SPDX-License-Identifier: Apache-2.0
// LU factors of one matrix: LAPACK's for large ones, plain loops for those that are done before
// LAPACK has checked its arguments. Both choose the same pivots.
#pragma once

#include "drivers/cpu/linear/lapack.h"
#include "drivers/cpu/linear/matrix_batch.h"

namespace anymps::cpu {

inline constexpr int kSmallMatrix = 48;

// a becomes its factors. Returns the first pivot that is 0, counted from 1; 0: none.
template <typename A>
int lu_in_place(ColumnMatrix<A>& a, std::vector<int>& pivots, bool pivot = true) {
  const auto m = static_cast<int>(a.rows), n = static_cast<int>(a.columns), k = std::min(m, n);
  int info = 0;
  pivots.assign(k, 0);
  if (k == 0) return 0;
  if (pivot && k > kSmallMatrix) {
    Lapack<A>::getrf(&m, &n, a.data.data(), &m, pivots.data(), &info);
    return info;
  }
  for (int p = 0; p < k; ++p) {
    A* column = &a.at(0, p);
    int best = p;
    for (int i = p + 1; i < m && pivot; ++i)
      if (pivot_size(column[i]) > pivot_size(column[best])) best = i;
    pivots[p] = best + 1;
    if (column[best] == A(0)) {
      if (info == 0) info = p + 1;
      continue;
    }
    for (int j = 0; j < n && best != p; ++j) std::swap(a.at(p, j), a.at(best, j));
    for (int i = p + 1; i < m; ++i) column[i] /= column[p];
    for (int j = p + 1; j < n; ++j) {
      A* other = &a.at(0, j);
      const A factor = other[p];
      for (int i = p + 1; i < m; ++i) other[i] -= column[i] * factor;
    }
  }
  return info;
}

// b becomes the solution; `trans` is LAPACK's: N, T or C.
template <typename A>
void lu_solve_in_place(const ColumnMatrix<A>& lu, const std::vector<int>& pivots,
                       ColumnMatrix<A>& b, char trans) {
  const auto n = static_cast<int>(lu.rows), columns = static_cast<int>(b.columns);
  if (n == 0 || columns == 0) return;
  if (trans != 'N' || n > kSmallMatrix) {
    int info = 0;
    Lapack<A>::getrs(&trans, &n, &columns, lu.data.data(), &n, pivots.data(), b.data.data(), &n,
                     &info);
    return;
  }
  // Rows of b lie together here, so that all columns are solved at once, in vectors.
  const size_t width = columns;
  std::vector<A> rows(static_cast<size_t>(n) * width);
  const auto row = [&](int i) { return rows.data() + static_cast<size_t>(i) * width; };
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < columns; ++c) row(i)[c] = b.at(i, c);
  const auto subtract = [&](A* from, const A* other, const A& factor) {
    for (size_t c = 0; c < width; ++c) from[c] -= factor * other[c];
  };
  for (int i = 0; i < n; ++i)
    if (const int other = pivots[i] - 1; other != i)
      std::swap_ranges(row(i), row(i) + width, row(other));
  for (int i = 1; i < n; ++i)
    for (int k = 0; k < i; ++k) subtract(row(i), row(k), lu.at(i, k));
  for (int i = n - 1; i >= 0; --i) {
    for (int k = i + 1; k < n; ++k) subtract(row(i), row(k), lu.at(i, k));
    for (size_t c = 0; c < width; ++c) row(i)[c] /= lu.at(i, i);
  }
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < columns; ++c) b.at(i, c) = row(i)[c];
}

}  // namespace anymps::cpu
