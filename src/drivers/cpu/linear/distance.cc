// SPDX-License-Identifier: Apache-2.0
// Distances of points on the CPU, in double. Euclidean and city distances go through tiles of b
// that are transposed, so that a vector holds several points.
#include "semantics/distance.h"

#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/distance_simd.h"
#include "drivers/cpu/linear/matrix_batch.h"

namespace anymps::cpu {

namespace {

using Points = MatrixOf<double>;

constexpr int64_t kTile = kDistanceTile;

double distance(const double* a, const double* b, int64_t axes, double p) {
  Norm norm(p);
  for (int64_t k = 0; k < axes; ++k) norm.add(std::abs(a[k] - b[k]));
  return norm.value();
}

// All distances of a's points to b's, rows in parallel.
void all_distances(const Points& a, const Points& b, double p, Points& y) {
  const int64_t axes = a.columns;
  y.resize(a.rows, b.rows);
  const bool tiled = p == 2 || p == 1;
  std::vector<double> tile(tiled ? axes * kTile : 0);
  for (int64_t first = 0; first < b.rows; first += kTile) {
    const int64_t count = std::min(kTile, b.rows - first);
    for (int64_t j = 0; j < count && tiled; ++j)
      for (int64_t k = 0; k < axes; ++k) tile[k * kTile + j] = b.at(first + j, k);
    const double cost = static_cast<double>(axes + 1) * (tiled ? 20 : 1000);
    parallel_for(0, a.rows, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double* point = a.data.data() + i * axes;
        double* to = &y.at(i, first);
        if (tiled) {
          double sums[kTile];
          sum_distances(point, axes, tile.data(), p == 2, sums);
          for (int64_t j = 0; j < count; ++j) to[j] = p == 2 ? std::sqrt(sums[j]) : sums[j];
        } else {
          for (int64_t j = 0; j < count; ++j)
            to[j] = distance(point, b.data.data() + (first + j) * axes, axes, p);
        }
      }
    });
  }
}

struct Tensors {
  std::vector<MatrixBatch> in, out;
  int64_t count = 1;

  Tensors(const KernelRequest& request, const std::vector<size_t>& in_axes, size_t out_axes) {
    const Shape batch = batch_of(request.out(), out_axes);
    count = element_count(batch);
    for (size_t i = 0; i < request.inputs.size(); ++i)
      in.emplace_back(request.in(i), in_axes[i], batch);
    out.emplace_back(request.out(), out_axes, batch);
  }
  Points read(const KernelArgs& args, size_t i, int64_t n) const {
    Points points;
    in[i].read(args.inputs[i], n, points);
    return points;
  }
};

CPU_KERNEL(cdist, "tiles") {
  return make_kernel(
      [tensors = Tensors(request, {2, 2}, 2), p = request.attrs.f("p")](const KernelArgs& args) {
        for (int64_t n = 0; n < tensors.count; ++n) {
          Points y;
          all_distances(tensors.read(args, 0, n), tensors.read(args, 1, n), p, y);
          tensors.out[0].write(args.outputs[0], n, y);
        }
      });
}

CPU_KERNEL(pdist, "tiles") {
  return make_kernel(
      [tensors = Tensors(request, {2}, 1), p = request.attrs.f("p")](const KernelArgs& args) {
        const Points x = tensors.read(args, 0, 0);
        Points all, y(1, tensors.out[0].columns());
        all_distances(x, x, p, all);
        int64_t pair = 0;
        for (int64_t i = 0; i < x.rows; ++i)
          for (int64_t j = i + 1; j < x.rows; ++j) y.at(0, pair++) = all.at(i, j);
        tensors.out[0].write(args.outputs[0], 0, y);
      });
}

// da[i] += the sum over j of dy(i, j) times the slope of the distance y(i, j).
template <typename At>
void all_slopes(const Points& a, const Points& b, double p, bool single, Points& da, At&& at) {
  const double cost = static_cast<double>((a.columns + 1) * (b.rows + 1)) * 5;
  parallel_for(0, a.rows, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < b.rows; ++j) {
        const auto [dy, y] = at(i, j);
        const double *from = a.data.data() + i * a.columns, *to = b.data.data() + j * a.columns;
        double* sum = da.data.data() + i * a.columns;
        if (p == 2) {
          const double scale = y == 0 ? 0 : dy / y;
          for (int64_t k = 0; k < a.columns; ++k) sum[k] += scale * (from[k] - to[k]);
        } else {
          for (int64_t k = 0; k < a.columns; ++k)
            sum[k] += dy * norm_slope(from[k] - to[k], y, p, single);
        }
      }
  });
}

CPU_KERNEL(cdist_gradient, "plain") {
  return make_kernel([tensors = Tensors(request, {2, 2, 2, 2}, 2), p = request.attrs.f("p"),
                      single = request.in(0).dtype == DType::kF32](const KernelArgs& args) {
    for (int64_t n = 0; n < tensors.count; ++n) {
      const Points dy = tensors.read(args, 0, n), a = tensors.read(args, 1, n),
                   b = tensors.read(args, 2, n), y = tensors.read(args, 3, n);
      Points da(a.rows, a.columns);
      all_slopes(a, b, p, single, da,
                 [&](int64_t i, int64_t j) { return std::pair(dy.at(i, j), y.at(i, j)); });
      tensors.out[0].write(args.outputs[0], n, da);
    }
  });
}

CPU_KERNEL(pdist_gradient, "plain") {
  return make_kernel([tensors = Tensors(request, {1, 2, 1}, 2), p = request.attrs.f("p"),
                      single = request.in(0).dtype == DType::kF32](const KernelArgs& args) {
    const Points dy = tensors.read(args, 0, 0), x = tensors.read(args, 1, 0),
                 y = tensors.read(args, 2, 0);
    Points dx(x.rows, x.columns);
    all_slopes(x, x, p, single, dx, [&](int64_t i, int64_t j) {
      if (i == j) return std::pair(0.0, 0.0);
      const int64_t low = std::min(i, j), high = std::max(i, j);
      const int64_t pair = low * (2 * x.rows - low - 1) / 2 + high - low - 1;
      return std::pair(dy.at(0, pair), y.at(0, pair));
    });
    tensors.out[0].write(args.outputs[0], 0, dx);
  });
}

}  // namespace

}  // namespace anymps::cpu
