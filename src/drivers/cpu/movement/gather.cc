// SPDX-License-Identifier: Apache-2.0
// gather, gather_nd and gather_along_axis: runs of elements copied from where indices say.
#include <cstdlib>
#include <cstring>

#include "drivers/cpu/common/row_walk.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/movement/gather_simd.h"
#include "drivers/cpu/movement/index_places.h"

namespace anymps::cpu {

namespace {

class Gather final : public Kernel {
 public:
  Rows rows_;  // operands y, x (without the picked axes), indices; one step per run
  std::vector<IndexedAxis> components_;  // one for each axis of x that an index picks from
  int64_t component_step_ = 0;           // between the components of an index, in elements
  int64_t run_ = 1;                      // elements copied at once
  int64_t element_ = 4;
  DType index_type_ = DType::kI64;
  std::string op_;

  void run(const KernelArgs& args) const override {
    if (index_type_ == DType::kI32)
      run_typed<int32_t>(args);
    else
      run_typed<int64_t>(args);
  }

 private:
  template <typename Index>
  void run_typed(const KernelArgs& args) const {
    const int64_t bytes = run_ * element_;
    switch (bytes) {
      case 0:
        return;
      case 1:
        return run_sized<Index, 1>(args, bytes);
      case 2:
        return run_sized<Index, 2>(args, bytes);
      case 4:
        return run_sized<Index, 4>(args, bytes);
      case 8:
        return run_sized<Index, 8>(args, bytes);
      case 16:
        return run_sized<Index, 16>(args, bytes);
      default:
        return run_sized<Index, 0>(args, bytes);
    }
  }

  template <typename Index, size_t kBytes>
  void run_sized(const KernelArgs& args, size_t bytes) const {
    const auto* indices = static_cast<const Index*>(args.inputs[1]);
    const auto* x = static_cast<const char*>(args.inputs[0]);
    auto* y = static_cast<char*>(args.outputs[0]);
    const int64_t length = rows_.length, tiles = (length + kTile - 1) / kTile;
    const double ns = 2 + 0.1 * static_cast<double>(bytes);
    if (tiled()) {
      const int64_t rows = rows_.count();
      return parallel_for(0, tiles * rows, ns * kTile, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i / rows * kTile;
          run_part<Index, kBytes>(x, indices, y, rows_.at(i % rows), first,
                                  std::min(first + kTile, length), bytes);
        }
      });
    }
    parallel_for(0, rows_.count() * length, ns, [&](int64_t begin, int64_t end) {
      if (begin == end) return;
      RowWalk walk(rows_, begin / length);
      int64_t first = begin % length;
      for (; begin < end; walk.next()) {
        const int64_t last = std::min(length, first + end - begin);
        run_part<Index, kBytes>(x, indices, y, walk.at(), first, last, bytes);
        begin += last - first;
        first = 0;
      }
    });
  }

  // Elements that are far apart in x, but near those of the next row: some columns are taken at a
  // time, so that what is read stays in the cache.
  static constexpr int64_t kTile = 32;
  bool tiled() const {
    return components_.size() == 1 && run_ == 1 && rows_.count() > 1 && rows_.length > kTile &&
           rows_.steps[1] != 0 && rows_.steps[2] != 0 &&
           std::abs(components_[0].stride) > std::abs(rows_.steps[1]);
  }

  // Elements [first, last) of a row.
  template <typename Index, size_t kBytes>
  void run_part(const char* x, const Index* indices, char* y, const Offsets& at, int64_t first,
                int64_t last, size_t bytes) const {
    const auto& steps = rows_.steps;
    if constexpr (kBytes != 0) {
      if (components_.size() == 1 && run_ == 1)
        return pick<Index, kBytes>(x + (at[1] + first * steps[1]) * element_,
                                   indices + at[2] + first * steps[2],
                                   y + (at[0] + first * steps[0]) * element_, last - first);
    }
    int64_t places[kPlaces];
    for (; first < last; first += kPlaces) {
      const int64_t n = std::min(kPlaces, last - first);
      const Index* index = indices + at[2] + first * steps[2];
      std::fill_n(places, components_.empty() ? n : 0, int64_t{0});
      for (size_t k = 0; k < components_.size(); ++k, index += component_step_) {
        int64_t more[kPlaces];
        look_up(op_.c_str(), index, steps[2], n, components_[k], 0, k == 0 ? places : more);
        for (int64_t i = 0; k > 0 && i < n; ++i) places[i] += more[i];
      }
      const char* from = x + (at[1] + first * steps[1]) * element_;
      char* to = y + (at[0] + first * steps[0]) * element_;
      const int64_t from_step = steps[1], to_step = steps[0] * element_;
      for (int64_t i = 0; i < n; ++i)
        std::memcpy(to + i * to_step, from + (places[i] + i * from_step) * element_,
                    kBytes ? kBytes : bytes);
    }
  }

  // An element for each of n indices. One that names no place reads the first and is found then.
  template <typename Index, size_t kBytes>
  void pick(const char* x, const Index* indices, char* y, int64_t n) const {
    constexpr auto kElement = static_cast<int64_t>(kBytes);
    const IndexedAxis& axis = components_[0];
    const int64_t extent = axis.extent, stride = axis.stride * kElement;
    const int64_t to = rows_.steps[0] * kElement, from = rows_.steps[1] * kElement;
    const int64_t step = rows_.steps[2];
    if (extent == 0) return check_indices(op_.c_str(), indices, step, n, axis);
    if constexpr (kBytes == 4 && sizeof(Index) == 8) {
      constexpr int64_t kMost = INT32_MAX;
      const auto span = [](int64_t count, int64_t by) {
        return count <= kMost / (std::abs(by) + 1);
      };
      if (n >= 32 && to == kElement && step == 1 && span(n, from) && span(extent, stride)) {
        const auto fits = pick_words(reinterpret_cast<const int32_t*>(x), indices, n, extent,
                                     axis.stride, rows_.steps[1], reinterpret_cast<int32_t*>(y));
        if (!fits) [[unlikely]]
          check_indices(op_.c_str(), indices, step, n, axis);
        return;
      }
    }
    const auto loop = [&](int64_t to_step, int64_t index_step) {
      bool outside = false;
      for (int64_t i = 0; i < n; ++i) {
        int64_t index = indices[i * index_step];
        index += index < 0 ? extent : 0;
        const bool wrong = static_cast<uint64_t>(index) >= static_cast<uint64_t>(extent);
        outside |= wrong;
        std::memcpy(y + i * to_step, x + (wrong ? 0 : index) * stride + i * from, kBytes);
      }
      return outside;
    };
    // Steps that the compiler knows.
    const bool outside = to == kElement && step == 1 ? loop(kElement, 1) : loop(to, step);
    if (outside) [[unlikely]]
      check_indices(op_.c_str(), indices, step, n, axis);
  }
};

// Axes from `x_first` of x and from `y_first` of y are the same dense run of elements.
bool dense_tail(const TensorDesc& x, size_t x_first, const TensorDesc& y, size_t y_first) {
  int64_t step = 1;
  for (size_t i = x.shape.size(), k = y.shape.size(); i > x_first && k > y_first;) {
    --i, --k;
    if (x.shape[i] != 1 && (x.strides[i] != step || y.strides[k] != step)) return false;
    step *= x.shape[i];
  }
  return true;
}

std::shared_ptr<Gather> start(const KernelRequest& request) {
  auto kernel = std::make_shared<Gather>();
  kernel->element_ = size_of(request.in(0).dtype);
  kernel->index_type_ = request.in(1).dtype;
  kernel->op_ = request.op->name;
  return kernel;
}

CPU_KERNEL(gather, "copy") {
  const TensorDesc &x = request.in(0), &indices = request.in(1), &y = request.out();
  const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), "gather");
  const size_t batch = request.attrs.i("batch_dims");
  const size_t picked = indices.shape.size() - batch;
  if (!dense_tail(x, axis + 1, y, axis + picked))
    return refuse(why, "the axes behind the picked one are not dense");
  auto kernel = start(request);
  Shape shape;
  Strides to, from, index;
  for (size_t i = 0; i < axis + picked; ++i) {
    const bool pick = i >= axis;
    shape.push_back(y.shape[i]);
    to.push_back(y.strides[i]);
    from.push_back(pick ? 0 : x.strides[i]);
    index.push_back(i < batch ? indices.strides[i] : pick ? indices.strides[batch + i - axis] : 0);
  }
  for (size_t i = axis + 1; i < x.shape.size(); ++i) kernel->run_ *= x.shape[i];
  kernel->rows_ = Rows(merge_loops(shape, {to, from, index}));
  kernel->components_ = {{static_cast<int64_t>(axis), x.shape[axis], x.strides[axis]}};
  return kernel;
}

CPU_KERNEL(gather_nd, "copy") {
  const TensorDesc &x = request.in(0), &indices = request.in(1), &y = request.out();
  const size_t batch = request.attrs.i("batch_dims");
  const size_t tuples = indices.shape.size() - 1;
  const size_t depth = indices.shape[tuples];
  if (!dense_tail(x, batch + depth, y, tuples))
    return refuse(why, "the axes behind the picked ones are not dense");
  auto kernel = start(request);
  Shape shape;
  Strides to, from, index;
  for (size_t i = 0; i < tuples; ++i) {
    shape.push_back(y.shape[i]);
    to.push_back(y.strides[i]);
    from.push_back(i < batch ? x.strides[i] : 0);
    index.push_back(indices.strides[i]);
  }
  for (size_t i = batch + depth; i < x.shape.size(); ++i) kernel->run_ *= x.shape[i];
  kernel->rows_ = Rows(merge_loops(shape, {to, from, index}));
  for (size_t i = batch; i < batch + depth; ++i)
    kernel->components_.push_back({static_cast<int64_t>(i), x.shape[i], x.strides[i]});
  kernel->component_step_ = indices.strides[tuples];
  return kernel;
}

CPU_KERNEL(gather_along_axis, "copy") {
  const TensorDesc &x = request.in(0), &indices = request.in(1), &y = request.out();
  const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), "gather_along_axis");
  auto kernel = start(request);
  Strides from = x.strides;
  from[axis] = 0;
  kernel->rows_ = Rows(merge_loops(y.shape, {y.strides, from, indices.strides}));
  kernel->components_ = {{static_cast<int64_t>(axis), x.shape[axis], x.strides[axis]}};
  return kernel;
}

}  // namespace

}  // namespace anymps::cpu
