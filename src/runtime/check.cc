// SPDX-License-Identifier: Apache-2.0
// ANYMPS_CHECK=reference: each kernel's result beside the oracle's, element by element. A result
// may differ by the tolerance of the op's record, relative to the element or, because sums cancel,
// to the largest element of the tensor.
#include <cmath>
#include <vector>

#include "base/env.h"
#include "base/narrow.h"
#include "base/text.h"
#include "drivers/reference_fallback.h"
#include "runtime/plan.h"

namespace anymps {

namespace {

template <typename T>
double magnitude(T value) {
  if constexpr (kIsComplexType<T>)
    return std::abs(WideComplex(value));
  else
    return std::abs(static_cast<double>(static_cast<Compute<T>>(value)));
}

template <typename T>
bool both_nan_or_same_infinity(T a, T b) {
  if constexpr (kIsComplexType<T>) {
    return (std::isnan(a.real()) && std::isnan(b.real())) ||
           (std::isnan(a.imag()) && std::isnan(b.imag())) || a == b;
  } else {
    const double x = static_cast<double>(static_cast<Compute<T>>(a));
    const double y = static_cast<double>(static_cast<Compute<T>>(b));
    return (std::isnan(x) && std::isnan(y)) || x == y;
  }
}

template <typename T>
std::string compare(const Shape& shape, const T* got, const T* expected, double tolerance) {
  const int64_t count = element_count(shape);
  double largest = 0;
  for (int64_t i = 0; i < count; ++i)
    if (const double m = magnitude(expected[i]); std::isfinite(m)) largest = std::max(largest, m);
  for (int64_t i = 0; i < count; ++i) {
    if (both_nan_or_same_infinity(got[i], expected[i])) continue;
    double distance = 0;
    if constexpr (kIsComplexType<T>)
      distance = std::abs(got[i] - expected[i]);
    else
      distance = std::abs(static_cast<double>(static_cast<Compute<T>>(got[i])) -
                          static_cast<double>(static_cast<Compute<T>>(expected[i])));
    if (distance <= tolerance * (magnitude(expected[i]) + largest)) continue;
    Shape index(shape.size(), 0);
    for (size_t axis = shape.size(), rest = i; axis-- > 0;) {
      index[axis] = static_cast<int64_t>(rest % static_cast<size_t>(shape[axis]));
      rest /= static_cast<size_t>(shape[axis]);
    }
    return fmt::format("at {}: {:.9g} instead of {:.9g} (tolerance {:g}, largest {:g})",
                       to_string(index), magnitude(got[i]), magnitude(expected[i]), tolerance,
                       largest);
  }
  return {};
}

std::string compare_texts(const TensorDesc& desc, const Text* got, const Text* expected) {
  for (int64_t i = 0; i < desc.count(); ++i)
    if (text_of(got[i]) != text_of(expected[i]))
      return fmt::format("at element {}: \"{}\" instead of \"{}\"", i,
                         shortened(text_of(got[i]), 40), shortened(text_of(expected[i]), 40));
  return {};
}

std::string compare_any(const TensorDesc& desc, const void* got, const void* expected,
                        double tolerance) {
  if (desc.dtype == DType::kString)
    return compare_texts(desc, static_cast<const Text*>(got), static_cast<const Text*>(expected));
  if (is_narrow(desc.dtype)) {
    const auto decoded = [&](const void* codes) {
      std::vector<float> numbers(desc.count());
      for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = decode_narrow(desc.dtype, static_cast<const uint8_t*>(codes)[i]);
      return numbers;
    };
    return compare(desc.shape, decoded(got).data(), decoded(expected).data(), tolerance);
  }
  return dispatch<kAny>(desc.dtype, [&]<typename T>() {
    return compare(desc.shape, static_cast<const T*>(got), static_cast<const T*>(expected),
                   tolerance);
  });
}

std::string compare_with_oracle(const KernelRequest& request, void* const* inputs,
                                void* const* outputs) {
  KernelPtr oracle = make_oracle_kernel(request);
  if (!oracle) return {};
  std::vector<std::vector<char>> memory;
  std::vector<void*> expected;
  for (const TensorDesc& desc : request.outputs) {
    memory.emplace_back(std::max<size_t>(desc.bytes(), 1));
    expected.push_back(memory.back().data());
  }
  StringStore strings;
  oracle->run({inputs, expected.data(), nullptr, nullptr, &strings});
  const bool given = !env_string("ANYMPS_CHECK_RTOL").empty();
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    const TensorDesc& desc = request.outputs[i];
    const double tolerance =
        given ? env_double("ANYMPS_CHECK_RTOL") : 4 * request.op->test.tolerance.of(desc.dtype);
    const std::string difference = compare_any(desc, outputs[i], expected[i], tolerance);
    if (!difference.empty())
      return fmt::format("output '{}' {}",
                         request.op->outputs[std::min(i, request.op->outputs.size() - 1)].name,
                         difference);
  }
  return {};
}

}  // namespace

void check_with_oracle(Driver& driver, const KernelChoice& choice, const KernelRequest& request,
                       void* const* inputs, void* const* outputs) {
  const DriverTraits traits = driver.traits();
  if (!traits.host_visible || !traits.computes) return;
  const std::string difference = compare_with_oracle(request, inputs, outputs);
  if (!difference.empty())
    fail(Code::kMismatch, "[{}] kernel {} differs from reference: {} (node \"{}\")",
         request.op->name, choice.name, difference, request.node);
}

}  // namespace anymps
