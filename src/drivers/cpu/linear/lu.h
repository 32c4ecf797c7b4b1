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
  pivots.assign(static_cast<size_t>(k), 0);
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
    pivots[static_cast<size_t>(p)] = best + 1;
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
  for (int c = 0; c < columns; ++c) {
    A* x = &b.at(0, c);
    for (int i = 0; i < n; ++i) std::swap(x[i], x[pivots[static_cast<size_t>(i)] - 1]);
    // Row by row: sums in a register, where a column at a time would wait for each store.
    for (int i = 0; i < n; ++i) {
      A sum = x[i];
      for (int k = 0; k < i; ++k) sum -= lu.at(i, k) * x[k];
      x[i] = sum;
    }
    for (int i = n - 1; i >= 0; --i) {
      A sum = x[i];
      for (int k = i + 1; k < n; ++k) sum -= lu.at(i, k) * x[k];
      x[i] = sum / lu.at(i, i);
    }
  }
}

}  // namespace anymps::cpu
