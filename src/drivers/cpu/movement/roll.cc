// SPDX-License-Identifier: Apache-2.0
// Elements that go round along axes, as strided copies of the parts, and slices that are repeated.
#include "ops/movement/roll.h"

#include <algorithm>
#include <cstring>

#include "drivers/cpu/common/copies.h"
#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

// Both parts of each axis that goes round, from axis `axis` on.
void add_parts(const TensorDesc& x, const TensorDesc& y, const std::vector<int64_t>& shifts,
               size_t axis, Piece part, Shape shape, std::vector<Piece>& to) {
  const auto size = static_cast<int64_t>(size_of(x.dtype));
  while (axis < shape.size() && shifts[axis] == 0) ++axis;
  if (axis == shape.size()) {
    part.copy = StridedCopy(size_of(x.dtype), shape, y.strides, x.strides);
    to.push_back(std::move(part));
    return;
  }
  const int64_t shift = shifts[axis], extent = shape[axis];
  Piece ahead = part, behind = part;
  ahead.to += shift * y.strides[axis] * size;
  behind.from += (extent - shift) * x.strides[axis] * size;
  shape[axis] = extent - shift;
  add_parts(x, y, shifts, axis + 1, std::move(ahead), shape, to);
  shape[axis] = shift;
  add_parts(x, y, shifts, axis + 1, std::move(behind), shape, to);
}

CPU_KERNEL(roll, "copy") {
  TensorDesc x = request.in(0), y = request.out();
  if (x.count() == 0) return make_copies({});
  std::vector<int64_t> shifts;
  if (request.attrs.ints("axes").empty()) {
    if (!x.contiguous() || !y.contiguous()) return refuse(why, "a flattened tensor with gaps");
    x = y = TensorDesc(x.dtype, Shape{x.count()});
    const int64_t count = x.count(), shift = request.attrs.ints("shifts")[0] % count;
    shifts = {(shift + count) % count};
  } else {
    shifts = roll_shifts(request.attrs, x.shape);
  }
  constexpr int64_t kMostAxes = 6;
  if (std::ssize(shifts) - std::count(shifts.begin(), shifts.end(), 0) > kMostAxes)
    return refuse(why, "more than six axes go round");
  std::vector<Piece> pieces;
  add_parts(x, y, shifts, 0, {0, 0, 0, 0, StridedCopy(1, Shape{}, Strides{}, Strides{})}, x.shape,
            pieces);
  return make_copies(std::move(pieces));
}

class RepeatInterleave final : public Kernel {
 public:
  explicit RepeatInterleave(const KernelRequest& request)
      : repeats_(request.attrs.i("repeats")), from_input_(request.has(1)) {
    const TensorDesc &x = request.in(0), &y = request.out();
    const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), "repeat_interleave");
    for (size_t i = 0; i < x.shape.size(); ++i)
      if (i != axis) (i < axis ? outer_ : bytes_) *= x.shape[i];
    bytes_ *= static_cast<int64_t>(size_of(x.dtype));
    slices_ = x.shape[axis];
    results_ = y.shape[axis];
    if (!from_input_) return;
    wide_ = request.in(1).dtype == DType::kI64;
    for_all_ = request.in(1).count() == 1;
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(slices_ + 1) * sizeof(int64_t);
  }

  void run(const KernelArgs& args) const override {
    auto* begin = static_cast<int64_t*>(args.scratch);  // where each slice begins in y
    begin[0] = 0;
    for (int64_t i = 0; i < slices_; ++i) {
      const int64_t times = times_of(args, for_all_ ? 0 : i);
      require(times >= 0, "[repeat_interleave] repeats has the entry {}, must not be negative",
              times);
      require(times <= results_ - begin[i],
              "[repeat_interleave] the repeats add up to more than {}", results_);
      begin[i + 1] = begin[i] + times;
    }
    require(begin[slices_] == results_, "[repeat_interleave] the repeats add up to {}, must be {}",
            begin[slices_], results_);
    const auto* x = static_cast<const char*>(args.inputs[0]);
    auto* y = static_cast<char*>(args.outputs[0]);
    const double ns = 5 + 0.1 * static_cast<double>(bytes_) * static_cast<double>(results_) /
                              static_cast<double>(std::max<int64_t>(slices_, 1));
    parallel_for(0, outer_ * slices_, ns, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t slice = i % slices_, row = i / slices_ * results_;
        for (int64_t k = begin[slice]; k < begin[slice + 1]; ++k)
          std::memcpy(y + (row + k) * bytes_, x + i * bytes_, bytes_);
      }
    });
  }

 private:
  int64_t times_of(const KernelArgs& args, int64_t i) const {
    if (!from_input_) return repeats_;
    return wide_ ? static_cast<const int64_t*>(args.inputs[1])[i]
                 : int64_t{static_cast<const int32_t*>(args.inputs[1])[i]};
  }

  int64_t repeats_, outer_ = 1, bytes_ = 1, slices_ = 0, results_ = 0;
  bool from_input_, wide_ = false, for_all_ = false;
};

CPU_KERNEL(repeat_interleave, "copy") {
  if (!dense(request, why)) return nullptr;
  return std::make_shared<RepeatInterleave>(request);
}

}  // namespace

}  // namespace anymps::cpu
