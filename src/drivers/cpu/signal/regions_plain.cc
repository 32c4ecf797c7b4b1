// SPDX-License-Identifier: Apache-2.0
// max_roi_pool, affine_grid and max_unpool on the CPU: plain loops over regions, places and planes.
#include <array>
#include <cstring>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/rows.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "ops/layers/pooling.h"
#include "ops/signal/sampling.h"

namespace anymps::cpu {

namespace {

template <typename T>
class MaxRoiPool {
 public:
  explicit MaxRoiPool(const KernelRequest& request)
      : x_(request.in(0)),
        rois_(request.in(1)),
        y_(request.out()),
        rule_(pooled_regions(request.attrs, x_.shape, y_.shape)) {}

  void operator()(const KernelArgs& args) const {
    if (y_.count() == 0) return;
    const double cells = static_cast<double>(x_.shape[1] * x_.shape[2] * x_.shape[3]);
    parallel_for(0, y_.shape[0], cells, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) region(args, r);
    });
  }

 private:
  using Range = std::pair<int64_t, int64_t>;

  void region(const KernelArgs& args, int64_t r) const {
    const T* roi = static_cast<const T*>(args.inputs[1]) + r * rois_.strides[0];
    std::array<double, 5> numbers;
    for (size_t k = 0; k < 5; ++k)
      numbers[k] = static_cast<double>(roi[static_cast<int64_t>(k) * rois_.strides[1]]);
    const PooledRegion region(rule_, numbers, r);
    const T* x = static_cast<const T*>(args.inputs[0]) + region.image() * x_.strides[0];
    T* y = static_cast<T*>(args.outputs[0]) + r * y_.strides[0];
    for (int64_t i = 0; i < y_.shape[2]; ++i)
      for (int64_t j = 0; j < y_.shape[3]; ++j) {
        const Range rows = region.rows_of(i), columns = region.columns_of(j);
        for (int64_t c = 0; c < y_.shape[1]; ++c)
          y[c * y_.strides[1] + i * y_.strides[2] + j * y_.strides[3]] =
              largest(x + c * x_.strides[1], rows, columns);
      }
  }
  T largest(const T* plane, Range rows, Range columns) const {
    if (rows.first >= rows.second || columns.first >= columns.second) return 0;
    T best = plane[rows.first * x_.strides[2] + columns.first * x_.strides[3]];
    for (int64_t i = rows.first; i < rows.second; ++i)
      for (int64_t j = columns.first; j < columns.second; ++j)
        best = std::max(best, plane[i * x_.strides[2] + j * x_.strides[3]]);
    return best;
  }

  TensorDesc x_, rois_, y_;
  PooledRegion::Rule rule_;
};

CPU_KERNEL(max_roi_pool, "regions") {
  if (is_half(request.in(0).dtype)) return widened(request, make_max_roi_pool, why);
  if (request.in(0).dtype == DType::kF64) return make_kernel(MaxRoiPool<double>(request));
  return make_kernel(MaxRoiPool<float>(request));
}

// y is [N, spatial…, d]: the last axis is a product of a matrix and a place.
template <typename T>
class AffineGrid {
 public:
  explicit AffineGrid(const KernelRequest& request)
      : theta_(request.in(0)), y_(request.out()), align_(request.attrs.b("align_corners")) {}

  void operator()(const KernelArgs& args) const {
    const auto d = y_.shape.back();
    if (y_.count() == 0) return;
    parallel_for(0, y_.count() / d, 10.0 * static_cast<double>(d), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        place(static_cast<const T*>(args.inputs[0]), static_cast<T*>(args.outputs[0]), i);
    });
  }

 private:
  void place(const T* theta, T* y, int64_t i) const {
    const size_t d = y_.shape.size() - 2;
    double normal[8];  // innermost axis first
    for (size_t k = 0; k < d; ++k) {
      const size_t axis = d - k;
      const int64_t extent = y_.shape[axis], at = i % extent;
      normal[k] = normalized_place(at, extent, align_);
      y += at * y_.strides[axis];
      i /= extent;
    }
    y += i * y_.strides[0];
    theta += i * theta_.strides[0];
    for (size_t r = 0; r < d; ++r) {
      const T* row = theta + static_cast<int64_t>(r) * theta_.strides[1];
      auto sum = static_cast<double>(row[static_cast<int64_t>(d) * theta_.strides[2]]);
      for (size_t k = 0; k < d; ++k)
        sum += static_cast<double>(row[static_cast<int64_t>(k) * theta_.strides[2]]) * normal[k];
      y[static_cast<int64_t>(r) * y_.strides.back()] = static_cast<T>(sum);
    }
  }

  TensorDesc theta_, y_;
  bool align_;
};

CPU_KERNEL(affine_grid, "plain") {
  if (is_half(request.in(0).dtype)) return widened(request, make_affine_grid, why);
  if (request.out().rank() > 9) return refuse(why, "more than 7 spatial axes");
  if (request.in(0).dtype == DType::kF64) return make_kernel(AffineGrid<double>(request));
  return make_kernel(AffineGrid<float>(request));
}

// Planes whose indices stay inside them are filled in parallel, each in order: of two elements that
// go to one place the last counts, or both are added.
template <typename T, typename Index>
KernelPtr make_unpool(const KernelRequest& request) {
  const TensorDesc &x = request.in(0), &indices = request.in(1), &y = request.out();
  const PoolIndex place = pool_index(request.attrs, y.shape, pool_window(request.attrs, y.shape));
  int64_t planes = 1;
  for (size_t i = 0; i < place.own_axes(); ++i) planes *= x.shape[i];
  const int64_t count = x.count(), size = planes == 0 ? 0 : count / planes;
  const bool add = request.attrs.s("reduce") == "add";
  // Places counted within planes that lie one after the other need no arithmetic.
  if (request.attrs.s("indices") == fmt::format("global_{}d", x.rank() - 2) &&
      request.attrs.s("layout") == "channels_first" && x.contiguous() && indices.contiguous() &&
      x.shape[1] == y.shape[1]) {
    const int64_t room = planes == 0 ? 0 : y.count() / planes;
    return make_kernel([=](const KernelArgs& args) {
      parallel_for(
          0, planes, 2 * static_cast<double>(size + room), [&](int64_t begin, int64_t end) {
            for (int64_t plane = begin; plane < end; ++plane) {
              const T* from = static_cast<const T*>(args.inputs[0]) + plane * size;
              const Index* at = static_cast<const Index*>(args.inputs[1]) + plane * size;
              T* to = static_cast<T*>(args.outputs[0]) + plane * room;
              std::fill_n(to, room, T{0});
              for (int64_t i = 0; i < size; ++i) {
                if (at[i] == -1) continue;  // a window of padding alone
                if (at[i] < 0 || at[i] >= room) [[unlikely]]
                  fail(Code::kInvalidArgument, "[max_unpool] index {} at {} is outside of {}",
                       int64_t{at[i]}, plane * size + i, to_string(y.shape));
                to[at[i]] = add ? to[at[i]] + from[i] : from[i];
              }
            }
          });
    });
  }
  return make_kernel([=](const KernelArgs& args) {
    auto* to = static_cast<T*>(args.outputs[0]);
    clear(to, y.bytes());
    parallel_for(0, planes, 40 * static_cast<double>(size), [&](int64_t begin, int64_t end) {
      Shape at(x.shape.size()), from;
      for (int64_t i = begin * size; i < end * size; ++i) {
        int64_t rest = i, x_at = 0, index_at = 0, y_at = 0;
        for (size_t axis = at.size(); axis-- > 0; rest /= x.shape[axis]) {
          at[axis] = rest % x.shape[axis];
          x_at += at[axis] * x.strides[axis];
          index_at += at[axis] * indices.strides[axis];
        }
        const int64_t index = static_cast<const Index*>(args.inputs[1])[index_at];
        if (index == -1) continue;  // a window of padding alone
        if (!place.decode(index, at, from)) [[unlikely]]
          fail(Code::kInvalidArgument, "[max_unpool] index {} at {} is outside of {}", index,
               to_string(at), to_string(y.shape));
        for (size_t axis = 0; axis < from.size(); ++axis) y_at += from[axis] * y.strides[axis];
        const T value = static_cast<const T*>(args.inputs[0])[x_at];
        to[y_at] = add ? to[y_at] + value : value;
      }
    });
  });
}

CPU_KERNEL(max_unpool, "planes") {
  const DType dtype = request.in(0).dtype;
  if (is_half(dtype)) return widened(request, make_max_unpool, why);
  if (!request.out().contiguous()) return refuse(why, "y is not contiguous");
  if (dtype != DType::kF32 && dtype != DType::kF64)
    return refuse(why, fmt::format("x is {}", name(dtype)));
  const bool wide = request.in(1).dtype == DType::kI64;
  if (!wide && request.in(1).dtype != DType::kI32) return refuse(why, "indices of another dtype");
  if (dtype == DType::kF64)
    return wide ? make_unpool<double, int64_t>(request) : make_unpool<double, int32_t>(request);
  return wide ? make_unpool<float, int64_t>(request) : make_unpool<float, int32_t>(request);
}

}  // namespace

}  // namespace anymps::cpu
