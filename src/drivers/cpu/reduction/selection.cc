// SPDX-License-Identifier: Apache-2.0
// nonzero and compress on the CPU: what is chosen is counted in chunks, and then each chunk's part
// of the result is written, in parallel both times.
#include <algorithm>
#include <cstring>
#include <utility>

#include "drivers/cpu/common/loops.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kChunk = 16384;

template <typename T>
bool is_set(const T* element) {
  if constexpr (std::is_same_v<T, bool>) {
    uint8_t byte;
    std::memcpy(&byte, element, 1);
    return byte != 0;
  } else {
    return static_cast<Compute<T>>(*element) != Compute<T>(0);
  }
}

template <typename T>
class Nonzero final : public Kernel {
 public:
  explicit Nonzero(const KernelRequest& request)
      : shape_(request.in(0).shape),
        loops_(merge_loops(request.in(0).shape, {request.in(0).strides})),
        count_(request.in(0).count()),
        dense_(request.in(0).contiguous()) {
    const bool axes_first = request.attrs.b("axes_first");
    axis_step_ = request.out().strides[axes_first ? 0 : 1];
    item_step_ = request.out().strides[axes_first ? 1 : 0];
    room_ = request.out().shape[axes_first ? 1 : 0];
  }
  size_t scratch_bytes() const override { return static_cast<size_t>(chunks()) * sizeof(int64_t); }

  void run(const KernelArgs& args) const override {
    const T* x = static_cast<const T*>(args.inputs[0]);
    auto* y = static_cast<int64_t*>(args.outputs[0]);
    auto* starts = static_cast<int64_t*>(args.scratch);
    for_chunks([&](int64_t chunk, int64_t begin, int64_t end) {
      int64_t found = 0;
      if (dense_)
        for (int64_t i = begin; i < end; ++i) found += is_set(x + i);
      else
        for (int64_t i = begin; i < end; ++i) found += is_set(x + loops_.offset(0, i));
      starts[chunk] = found;
    });
    int64_t total = 0;
    for (int64_t chunk = 0; chunk < chunks(); ++chunk) total += std::exchange(starts[chunk], total);
    require(total == room_, "[nonzero] {} elements are not 0, the output has room for {}", total,
            room_);
    for_chunks([&](int64_t chunk, int64_t begin, int64_t end) {
      int64_t item = starts[chunk];
      const int64_t row = shape_.empty() ? 1 : shape_[shape_.size() - 1];
      for (int64_t i = begin; i < end;) {
        const int64_t count = std::min({end - i, row - i % row, kPart});
        item += write_part(x, i, count, y + item * item_step_);
        i += count;
      }
    });
  }

 private:
  static constexpr int64_t kPart = 512;

  // The places of elements [i, i + count), which lie on one row. Returns how many there are.
  int64_t write_part(const T* x, int64_t i, int64_t count, int64_t* y) const {
    int32_t found[kPart];
    int64_t places = 0;
    for (int64_t k = 0; k < count; ++k) {  // no branch depends on the elements
      found[places] = static_cast<int32_t>(k);
      places += is_set(x + (dense_ ? i + k : loops_.offset(0, i + k)));
    }
    if (places == 0) return 0;
    int64_t rest = i;
    for (size_t axis = shape_.size(); axis-- > 0; rest /= shape_[axis]) {
      const int64_t first = rest % shape_[axis];
      const bool last = axis + 1 == shape_.size();
      int64_t* to = y + static_cast<int64_t>(axis) * axis_step_;
      for (int64_t k = 0; k < places; ++k) to[k * item_step_] = first + (last ? found[k] : 0);
    }
    return places;
  }

  int64_t chunks() const { return (count_ + kChunk - 1) / kChunk; }
  template <typename Fn>
  void for_chunks(Fn&& fn) const {
    parallel_for(0, chunks(), 2.0 * kChunk, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk)
        fn(chunk, chunk * kChunk, std::min(count_, (chunk + 1) * kChunk));
    });
  }

  Shape shape_;
  Loops loops_;
  int64_t count_, axis_step_ = 0, item_step_ = 0, room_ = 0;
  bool dense_;
};

CPU_KERNEL(nonzero, "chunks") {
  return dispatch<kAny>(request.in(0).dtype, [&]<typename T>() -> KernelPtr {
    return std::make_shared<Nonzero<T>>(request);
  });
}

// Slices along an axis of a contiguous tensor, each a run of bytes in every outer place.
class Compress final : public Kernel {
 public:
  Compress(const KernelRequest& request, int64_t axis) : step_(request.in(1).strides[0]) {
    const TensorDesc& x = request.in(0);
    length_ = request.in(1).shape[0];
    extent_ = axis < 0 ? x.count() : x.shape[axis];
    taken_ = request.out().shape[std::max<int64_t>(axis, 0)];
    for (int64_t i = 0; axis >= 0 && i < x.rank(); ++i)
      if (i != axis) (i < axis ? outer_ : run_) *= x.shape[i];
    run_ *= static_cast<int64_t>(size_of(x.dtype));
  }
  size_t scratch_bytes() const override { return static_cast<size_t>(taken_) * sizeof(int64_t); }

  void run(const KernelArgs& args) const override {
    const auto* condition = static_cast<const uint8_t*>(args.inputs[1]);
    const auto* x = static_cast<const char*>(args.inputs[0]);
    auto* y = static_cast<char*>(args.outputs[0]);
    auto* places = static_cast<int64_t*>(args.scratch);
    int64_t taken = 0;
    for (int64_t i = 0; i < length_; ++i) {
      if (condition[i * step_] == 0) continue;
      require(i < extent_, "[compress] condition is true at {}, the axis has the extent {}", i,
              extent_);
      require(taken < taken_, "[compress] more than {} places are chosen", taken_);
      places[taken++] = i;
    }
    require(taken == taken_, "[compress] {} places are chosen, the output has room for {}", taken,
            taken_);
    parallel_for(
        0, outer_ * taken_, 3 + 0.1 * static_cast<double>(run_), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            std::memcpy(y + i * run_, x + (i / taken_ * extent_ + places[i % taken_]) * run_, run_);
        });
  }

 private:
  int64_t step_, length_ = 0, extent_ = 0, taken_ = 0, outer_ = 1, run_ = 1;
};

CPU_KERNEL(compress, "runs") {
  if (!request.in(0).contiguous() || !request.out().contiguous())
    return refuse(why, "x or y is not contiguous");
  const std::vector<int64_t>& axes = request.attrs.ints("axes");
  const int64_t axis =
      axes.empty() ? -1 : normalize_axis(axes[0], request.in(0).rank(), "compress");
  return std::make_shared<Compress>(request, axis);
}

}  // namespace

}  // namespace anymps::cpu
