// SPDX-License-Identifier: Apache-2.0
// dequantize_lut on the CPU: elements are places in a table, which may differ from group to group.
#include <cstring>

#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

// The table's offsets follow y's axes: each place is the element's, divided by the group's extent.
class LookUp {
 public:
  explicit LookUp(const KernelRequest& request)
      : x_(request.in(0)), table_(request.in(1)), y_(request.out()) {
    const size_t rank = x_.shape.size();
    const bool whole = table_.rank() == 1, vectors = table_.shape.size() == rank + 2;
    const size_t entries = table_.shape.size() - (vectors ? 2 : 1);
    entries_ = table_.shape[entries];
    entry_step_ = table_.strides[entries];
    const auto axis = vectors ? static_cast<size_t>(normalize_axis(request.attrs.i("axis"),
                                                                   x_.rank(), "dequantize_lut"))
                              : rank;
    const int64_t length = vectors ? table_.shape.back() : 1;
    // Offsets in x and in the table for each place along each axis of y.
    for (size_t i = 0; i < rank; ++i) {
      axes_.emplace_back();
      const int64_t parts = i == axis ? length : 1;
      const int64_t group = whole || x_.shape[i] == 0 ? 1 : x_.shape[i] / table_.shape[i];
      for (int64_t at = 0; at < y_.shape[i]; ++at) {
        const int64_t source = at / parts;
        int64_t place = whole ? 0 : source / group * table_.strides[i];
        if (i == axis) place += at % parts * table_.strides.back();
        axes_.back().push_back({source * x_.strides[i], place, at * y_.strides[i]});
      }
    }
    if (rank == 0) axes_.push_back({{0, 0, 0}});
  }

  void operator()(const KernelArgs& args) const {
    if (y_.count() == 0) return;
    const int64_t size = size_of(y_.dtype);
    const auto inner = std::ssize(axes_.back());
    parallel_for(0, y_.count() / inner, 20 + 1.5 * static_cast<double>(inner),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     Place base;
                     int64_t rest = row;
                     for (size_t i = axes_.size() - 1; i-- > 0;) {
                       const auto extent = std::ssize(axes_[i]);
                       base = base + axes_[i][rest % extent];
                       rest /= extent;
                     }
                     for (const Place& step : axes_.back()) {
                       const Place at = base + step;
                       const int64_t entry = static_cast<const uint8_t*>(args.inputs[0])[at.x];
                       require(entry < entries_,
                               "[dequantize_lut] an element of x is {}, the table has {} entries",
                               entry, entries_);
                       std::memcpy(static_cast<char*>(args.outputs[0]) + at.y * size,
                                   static_cast<const char*>(args.inputs[1]) +
                                       (at.table + entry * entry_step_) * size,
                                   size);
                     }
                   }
                 });
  }

 private:
  struct Place {
    int64_t x = 0, table = 0, y = 0;
    Place operator+(const Place& other) const {
      return {x + other.x, table + other.table, y + other.y};
    }
  };
  TensorDesc x_, table_, y_;
  int64_t entries_ = 0, entry_step_ = 0;
  std::vector<std::vector<Place>> axes_;
};

CPU_KERNEL(dequantize_lut, "tables") { return make_kernel(LookUp(request)); }

}  // namespace

}  // namespace anymps::cpu
