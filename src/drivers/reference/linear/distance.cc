// SPDX-License-Identifier: Apache-2.0
// Distances of points by the formula, and the cross product.
#include "semantics/distance.h"
#include "drivers/reference/linear/matrices.h"

namespace anymps {

namespace {

double distance(const Matrix& a, int64_t i, const Matrix& b, int64_t j, double p) {
  Norm norm(p);
  for (int64_t k = 0; k < a.columns; ++k) norm.add(std::abs(a.at(i, k) - b.at(j, k)));
  return norm.value();
}

// Adds to row i of da what row j of b and their distance give.
void add_slopes(Matrix& da, const Matrix& a, int64_t i, const Matrix& b, int64_t j, double dy,
                double y, double p, bool single) {
  for (int64_t k = 0; k < a.columns; ++k)
    da.at(i, k) += dy * norm_slope(a.at(i, k) - b.at(j, k), y, p, single);
}

}  // namespace

REFERENCE(cdist) {
  const Matrices y(args.out[0], 2), a_in(args.in[0], 2, y), b_in(args.in[1], 2, y);
  for (int64_t n = 0; n < y.count(); ++n) {
    const Matrix a = a_in.read(n), b = b_in.read(n);
    Matrix result(a.rows, b.rows);
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = 0; j < b.rows; ++j)
        result.at(i, j) = distance(a, i, b, j, args.attrs.f("p"));
    y.write(n, result);
  }
}

REFERENCE(cdist_gradient) {
  const Matrices out(args.out[0], 2), dy_in(args.in[0], 2, out), a_in(args.in[1], 2, out),
      b_in(args.in[2], 2, out), y_in(args.in[3], 2, out);
  for (int64_t n = 0; n < out.count(); ++n) {
    const Matrix dy = dy_in.read(n), a = a_in.read(n), b = b_in.read(n), y = y_in.read(n);
    Matrix da(a.rows, a.columns);
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = 0; j < b.rows; ++j)
        add_slopes(da, a, i, b, j, dy.at(i, j), y.at(i, j), args.attrs.f("p"),
                   args.in[0].dtype == DType::kF32);
    out.write(n, da);
  }
}

REFERENCE(pdist) {
  const Matrix x = Matrices(args.in[0], 2).read(0);
  Matrix y(1, args.out[0].count());
  int64_t pair = 0;
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = i + 1; j < x.rows; ++j)
      y.at(0, pair++) = distance(x, i, x, j, args.attrs.f("p"));
  Matrices(args.out[0], 1).write(0, y);
}

REFERENCE(pdist_gradient) {
  const Matrix dy = Matrices(args.in[0], 1).read(0), x = Matrices(args.in[1], 2).read(0),
               y = Matrices(args.in[2], 1).read(0);
  Matrix dx(x.rows, x.columns);
  int64_t pair = 0;
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = i + 1; j < x.rows; ++j, ++pair) {
      add_slopes(dx, x, i, x, j, dy.at(0, pair), y.at(0, pair), args.attrs.f("p"),
                 args.in[0].dtype == DType::kF32);
      add_slopes(dx, x, j, x, i, dy.at(0, pair), y.at(0, pair), args.attrs.f("p"),
                 args.in[0].dtype == DType::kF32);
    }
  Matrices(args.out[0], 2).write(0, dx);
}

REFERENCE(cross) {
  const View& y = args.out[0];
  const BroadcastOffset at_a(args.in[0], y.shape()), at_b(args.in[1], y.shape());
  const size_t axis = normalize_axis(args.attrs.i("axis"), y.rank(), "cross");
  with_accumulator(y.dtype, [&]<typename W>() {
    dispatch<kAccumulates<W> & ~kBoolean>(y.dtype, [&]<typename T>() {
      if constexpr (std::is_same_v<W, double> && std::is_integral_v<T>) {
        return;  // integers are computed as such
      } else {
        for_each_index(y.shape(), [&](const Shape& index) {
          Shape next = index, last = index;
          next[axis] = (index[axis] + 1) % 3;
          last[axis] = (index[axis] + 2) % 3;
          const auto value = [&](size_t i, int64_t at) {
            return static_cast<W>(static_cast<Compute<T>>(args.in[i].as<T>()[at]));
          };
          const W result = value(0, at_a(next)) * value(1, at_b(last)) -
                           value(0, at_a(last)) * value(1, at_b(next));
          y.at<T>(index) = static_cast<T>(static_cast<Compute<T>>(result));
        });
      }
    });
  });
}

}  // namespace anymps
