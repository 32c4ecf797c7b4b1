// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/linear/typed_tail.h"

#include "drivers/cpu/linear/typed_gemm_pack.h"

namespace anymps::cpu {

namespace {

// What an activation keeps of integers, which were wrapped to their width: bounds are cut to the
// type's range.
template <typename T>
struct IntegerRange {
  explicit IntegerRange(const TypedTail& tail) {
    if (tail.activation == Activation::kRelu) low = 0;
    if (tail.activation != Activation::kClamp) return;
    low = bound(std::ceil(tail.alpha));
    high = bound(std::floor(tail.beta));
  }
  static T bound(double value) {
    if (value <= static_cast<double>(Limits::lowest())) return Limits::lowest();
    if (value >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<T>(value);
  }
  using Limits = std::numeric_limits<T>;
  T low = Limits::lowest(), high = Limits::max();
};

template <typename T>
void run_tail(const TypedTail& tail, const KernelArgs& args) {
  const auto finish = [&] {
    if constexpr (std::is_integral_v<T>)
      return [range = IntegerRange<T>(tail)](T value) {
        return std::min(std::max(value, range.low), range.high);
      };
    else if constexpr (std::is_same_v<T, double>)
      return [&tail](T value) {
        return tail.activation == Activation::kNone
                   ? value
                   : apply_activation(tail.activation, value, tail.alpha, tail.beta);
      };
    else
      return [](T value) { return value; };
  }();
  for_each_row(tail.rows, 1, [&](const Offsets& at) {
    T* y = static_cast<T*>(args.outputs[0]) + at[0];
    const Offsets& steps = tail.rows.steps;
    for (int64_t i = 0; i < tail.rows.length; ++i) {
      T value = y[i * steps[0]];
      if constexpr (scalar::kIsComplex<T>)
        value *= static_cast<typename T::value_type>(tail.scale);
      else if constexpr (std::is_same_v<T, double>)
        value *= tail.scale;
      for (size_t s = 0; s < tail.summands.size(); ++s) {
        const T* from = static_cast<const T*>(args.inputs[tail.summands[s]]) + at[s + 1];
        value = scalar::add(value, from[i * steps[s + 1]]);
      }
      y[i * steps[0]] = finish(value);
    }
  });
}

}  // namespace

void TypedTail::run(DType dtype, const KernelArgs& args) const {
  if (scale == 1 && activation == Activation::kNone && summands.empty()) return;
  dispatch<kTypedGemm>(dtype, [&]<typename T>() { run_tail<T>(*this, args); });
}

}  // namespace anymps::cpu
