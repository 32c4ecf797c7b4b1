// SPDX-License-Identifier: Apache-2.0
// label_encode on the CPU, with a hash map that is made once for constant keys.
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <unordered_map>

#include "drivers/cpu/common/rows.h"
#include "drivers/cpu/cpu_kernel.h"
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

CPU_KERNEL(label_encode, "hash") {
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
                    to);
      }
    });
  });
}

}  // namespace

}  // namespace anymps::cpu
