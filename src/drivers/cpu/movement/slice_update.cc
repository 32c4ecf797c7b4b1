// SPDX-License-Identifier: Apache-2.0
// slice_update and slice_gradient on the CPU: a copy of x, or zeros, and one of the update over it.
// Where the result is x's own memory, there is only the update to copy.
#include "drivers/cpu/common/copies.h"
#include "drivers/cpu/cpu_kernel.h"
#include "ops/shape_rules.h"

namespace anymps::cpu {

namespace {

class RangeUpdate final : public Kernel {
 public:
  RangeUpdate(KernelPtr all, KernelPtr range, bool own)
      : all_(std::move(all)), range_(std::move(range)), own_(own) {}
  bool in_place(size_t i, size_t) const override { return i == 0 && own_; }
  void run(const KernelArgs& args) const override {
    if (!own_ || args.inputs[0] != args.outputs[0]) all_->run(args);
    range_->run(args);
  }

 private:
  KernelPtr all_, range_;
  bool own_;
};

// y starts as a copy of x or as zeros, and then the range gets the update.
KernelPtr make_range(const KernelRequest& request, int start, int update, std::string& why) {
  static const char* kNames[] = {"starts", "ends", "axes", "steps"};
  const TensorDesc& y = request.out();
  std::vector<int64_t> lists[4];
  for (size_t i = 0; i < 4; ++i) {
    const auto list = request.ints(2 + i, kNames[i]);
    if (!list) return refuse(why, fmt::format("{} are not known", kNames[i]));
    lists[i] = *list;
  }
  const char* op = request.op->name.c_str();
  const auto ranges = slice_ranges(y.shape, lists[0], lists[1], lists[2], lists[3], op);
  const TensorDesc& part = request.in(update);
  if (part.shape.size() != ranges.size()) return refuse(why, "the update is of another rank");
  Strides to;
  int64_t first = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].length != part.shape[i]) return refuse(why, "the update does not fit the range");
    to.push_back(ranges[i].step * y.strides[i]);
    if (part.count() > 0) first += ranges[i].start * y.strides[i];
  }
  const size_t size = size_of(y.dtype);
  const Strides from =
      start == Piece::kZeros ? Strides(y.shape.size(), int64_t{0}) : request.in(0).strides;
  return std::make_shared<RangeUpdate>(
      make_copies({{start, 0, 0, 0, StridedCopy(size, y.shape, y.strides, from)}}),
      make_copies({{update, 0, 0, first * static_cast<int64_t>(size),
                    StridedCopy(size, part.shape, to, part.strides)}}),
      start == 0 && request.in(0) == y);
}
CPU_KERNEL(slice_update, "copy") { return make_range(request, 0, 1, why); }
CPU_KERNEL(slice_gradient, "copy") { return make_range(request, Piece::kZeros, 0, why); }

}  // namespace

}  // namespace anymps::cpu
