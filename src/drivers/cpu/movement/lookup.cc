// SPDX-License-Identifier: Apache-2.0
// Ops on the CPU that look elements up: label_encode with a hash map, which is made once for
// constant keys, unique with sorted pairs, and dequantize_lut.
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/common/rows.h"
#include "ops/reduction/unique.h"
#include "semantics/elements.h"

namespace anymps::cpu {

namespace {

// A number as a key: elements are equal if their keys are. -0 is 0 and all NaN are one.
uint64_t key_of(DType dtype, const char* element) {
  uint64_t key = 0;
  if (is_int(dtype)) {
    std::memcpy(&key, element, size_of(dtype));
    return key;
  }
  double number = load_number(dtype, element);
  if (number == 0) number = 0;
  if (std::isnan(number)) number = std::numeric_limits<double>::quiet_NaN();
  std::memcpy(&key, &number, sizeof key);
  return key;
}

// Where each key comes first.
class KeyMap {
 public:
  KeyMap(DType dtype, const void* keys, int64_t count, int64_t step) : dtype_(dtype) {
    for (int64_t i = 0; i < count; ++i) {
      const char* element =
          static_cast<const char*>(keys) + i * step * static_cast<int64_t>(size_of(dtype));
      if (dtype == DType::kString)
        texts_.emplace(text_at(element), i);
      else
        numbers_.emplace(key_of(dtype, element), i);
    }
  }
  int64_t find(const char* element) const {
    if (dtype_ == DType::kString) {
      const auto found = texts_.find(text_at(element));
      return found == texts_.end() ? -1 : found->second;
    }
    const auto found = numbers_.find(key_of(dtype_, element));
    return found == numbers_.end() ? -1 : found->second;
  }

 private:
  static const std::string& text_at(const char* element) {
    Text text;
    std::memcpy(&text, element, size_of(DType::kString));
    return text_of(text);
  }
  DType dtype_;
  std::unordered_map<uint64_t, int64_t> numbers_;
  std::unordered_map<std::string, int64_t> texts_;
};

KernelPtr make_label_encode(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &keys = request.in(1), &values = request.in(2),
                   &y = request.out();
  if (keys.count() != values.count() || request.in(3).count() != 1)
    return refuse(why, "keys, values and default do not fit");
  const Rows rows(make_loops(y.shape, {y.strides, x.strides}));
  const auto from = static_cast<int64_t>(size_of(x.dtype)),
             to = static_cast<int64_t>(size_of(y.dtype));
  const auto build = [dtype = keys.dtype, count = keys.count(), step = keys.strides[0]](
                         const void* data) { return KeyMap(dtype, data, count, step); };
  std::shared_ptr<const KeyMap> ready;
  if (request.constant(1) && keys.contiguous()) {
    const auto bytes = request.constant(1)->data();
    ready = std::make_shared<const KeyMap>(build(bytes.get()));
  }
  return make_kernel([=, step = values.strides[0]](const KernelArgs& args) {
    std::shared_ptr<const KeyMap> map = ready;
    if (!map) map = std::make_shared<const KeyMap>(build(args.inputs[1]));
    for_each_row(rows, 30, [&](const Offsets& at) {
      for (int64_t i = 0; i < rows.length; ++i) {
        const char* element =
            static_cast<const char*>(args.inputs[0]) + (at[1] + i * rows.steps[1]) * from;
        const int64_t place = map->find(element);
        const void* value =
            place < 0 ? args.inputs[3] : static_cast<char*>(args.inputs[2]) + place * step * to;
        std::memcpy(static_cast<char*>(args.outputs[0]) + (at[0] + i * rows.steps[0]) * to, value,
                    static_cast<size_t>(to));
      }
    });
  });
}

KernelPtr make_unique(const KernelRequest& request, std::string& why) {
  const TensorDesc& x = request.in(0);
  if (!x.contiguous()) return refuse(why, "x is not contiguous");
  for (const TensorDesc& output : request.outputs)
    if (!output.contiguous()) return refuse(why, "an output is not contiguous");
  const int64_t axis = unique_axis(request.attrs.ints("axes"), x.rank());
  int64_t outer = 1, run = static_cast<int64_t>(size_of(x.dtype)), slices = x.count();
  if (axis >= 0) {
    slices = x.shape[static_cast<size_t>(axis)];
    for (int64_t i = 0; i < x.rank(); ++i)
      if (i != axis) (i < axis ? outer : run) *= x.shape[static_cast<size_t>(i)];
  }
  const bool numbers = axis < 0 && contains(kAny, x.dtype), sorted = request.attrs.b("sorted");
  const int64_t room = request.out().shape[static_cast<size_t>(std::max<int64_t>(axis, 0))];
  return make_kernel([=, outputs = request.outputs.size()](const KernelArgs& args) {
    const Distinct distinct = numbers ? find_distinct_numbers(x, args.inputs[0], sorted)
                                      : find_distinct(x, args.inputs[0], axis, sorted);
    const auto count = static_cast<int64_t>(distinct.first.size());
    require(count == room, "[unique] there are {} distinct ones, the output has room for {}", count,
            room);
    parallel_for(
        0, outer * count, 3 + 0.1 * static_cast<double>(run), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t slice = distinct.first[static_cast<size_t>(i % count)];
            std::memcpy(
                static_cast<char*>(args.outputs[0]) + i * run,
                static_cast<const char*>(args.inputs[0]) + (i / count * slices + slice) * run,
                static_cast<size_t>(run));
          }
        });
    const std::vector<int64_t>* lists[] = {&distinct.first, &distinct.inverse, &distinct.counts};
    for (size_t i = 1; i < outputs; ++i)
      std::copy(lists[i - 1]->begin(), lists[i - 1]->end(), static_cast<int64_t*>(args.outputs[i]));
  });
}

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
    const auto size = static_cast<int64_t>(size_of(y_.dtype));
    const auto inner = static_cast<int64_t>(axes_.back().size());
    parallel_for(0, y_.count() / inner, 20 + 1.5 * static_cast<double>(inner),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     Place base;
                     int64_t rest = row;
                     for (size_t i = axes_.size() - 1; i-- > 0;) {
                       const auto extent = static_cast<int64_t>(axes_[i].size());
                       base = base + axes_[i][static_cast<size_t>(rest % extent)];
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
                                   static_cast<size_t>(size));
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

KernelPtr make_dequantize_lut(const KernelRequest& request, std::string&) {
  return make_kernel(LookUp(request));
}

const KernelRegistrar kLabelEncode("cpu", "label_encode", "hash", 10, make_label_encode);
const KernelRegistrar kUnique("cpu", "unique", "pairs", 10, make_unique);
const KernelRegistrar kDequantizeLut("cpu", "dequantize_lut", "tables", 10, make_dequantize_lut);

}  // namespace

}  // namespace anymps::cpu
