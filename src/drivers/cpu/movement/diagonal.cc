// SPDX-License-Identifier: Apache-2.0
// Matrices of diagonals on the CPU: zeros, then a copy to a diagonal. Diagonals themselves are
// views.
#include "drivers/cpu/common/copies.h"
#include "drivers/cpu/cpu_kernel.h"

namespace anymps::cpu {

namespace {

CPU_KERNEL(diag_embed, "copy") {
  const TensorDesc &x = request.in(0), &y = request.out();
  const size_t rows = normalize_axis(request.attrs.i("axis1"), y.rank(), "diag_embed");
  const size_t columns = normalize_axis(request.attrs.i("axis2"), y.rank(), "diag_embed");
  const int64_t offset = request.attrs.i("offset");
  Strides to;
  for (size_t i = 0; i < y.shape.size(); ++i)
    if (i != rows && i != columns) to.push_back(y.strides[i]);
  to.push_back(y.strides[rows] + y.strides[columns]);
  const int64_t first = offset < 0 ? -offset * y.strides[rows] : offset * y.strides[columns];
  const size_t size = size_of(y.dtype);
  std::vector<Piece> pieces;
  pieces.push_back(
      {Piece::kZeros, 0, 0, 0, StridedCopy(size, y.shape, y.strides, Strides(y.shape.size(), 0))});
  if (x.count() > 0)
    pieces.push_back(
        {0, 0, 0, first * static_cast<int64_t>(size), StridedCopy(size, x.shape, to, x.strides)});
  return make_copies(std::move(pieces));
}

}  // namespace

}  // namespace anymps::cpu
