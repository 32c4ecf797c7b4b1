// SPDX-License-Identifier: Apache-2.0
// ANYMPS_CHECK=reference: each kernel's result beside the oracle's, element by element. A result
// may differ by the tolerance of the op's record, relative to the element or, because sums cancel,
// to the largest element of the tensor; where an op does nothing but sum, to what the largest would
// be if nothing cancelled. The oracle runs in the kernel's mode: what that takes for zero is zero
// here too, and a result may differ by what sums lose of it.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/denormals.h"
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
double largest_of(const T* elements, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i)
    if (const double m = magnitude(elements[i]); std::isfinite(m)) largest = std::max(largest, m);
  return largest;
}

// What a result may lack where subnormal numbers are zeros, if a million terms were. Halves of
// f16 are computed in f32, and none of them is that small.
template <typename T>
double flushed_terms() {
  constexpr double terms = 0x1p20;
  constexpr bool wide = std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>;
  return terms * (wide ? std::numeric_limits<double>::min()
                       : static_cast<double>(std::numeric_limits<float>::min()));
}

template <typename T>
std::string compare(const Shape& shape, const T* got, const T* expected, double tolerance,
                    double uncancelled, bool flushed) {
  const int64_t count = element_count(shape);
  const double largest = std::max(largest_of(expected, count), uncancelled);
  const double lost = flushed ? flushed_terms<T>() : 0;
  for (int64_t i = 0; i < count; ++i) {
    if (both_nan_or_same_infinity(got[i], expected[i])) continue;
    double distance = 0;
    if constexpr (kIsComplexType<T>)
      distance = std::abs(got[i] - expected[i]);
    else
      distance = std::abs(static_cast<double>(static_cast<Compute<T>>(got[i])) -
                          static_cast<double>(static_cast<Compute<T>>(expected[i])));
    if (distance <= tolerance * (magnitude(expected[i]) + largest) + lost) continue;
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
                        double tolerance, double uncancelled, bool flushed) {
  if (desc.dtype == DType::kString)
    return compare_texts(desc, static_cast<const Text*>(got), static_cast<const Text*>(expected));
  if (is_narrow(desc.dtype)) {
    const auto decoded = [&](const void* codes) {
      std::vector<float> numbers(desc.count());
      for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = decode_narrow(desc.dtype, static_cast<const uint8_t*>(codes)[i]);
      return numbers;
    };
    return compare(desc.shape, decoded(got).data(), decoded(expected).data(), tolerance,
                   uncancelled, false);
  }
  return dispatch<kAny>(desc.dtype, [&]<typename T>() {
    return compare(desc.shape, static_cast<const T*>(got), static_cast<const T*>(expected),
                   tolerance, uncancelled, flushed);
  });
}

// The elements of a strided tensor, one after another.
std::vector<char> dense_copy(const TensorDesc& desc, const void* data) {
  const size_t size = size_of(desc.dtype);
  std::vector<char> copy(desc.bytes());
  Shape index(desc.shape.size(), 0);
  for (int64_t i = 0, offset = 0; i < desc.count(); ++i) {
    std::memcpy(&copy[static_cast<size_t>(i) * size],
                static_cast<const char*>(data) + offset * static_cast<int64_t>(size), size);
    for (size_t axis = index.size(); axis-- > 0;) {
      offset += desc.strides[axis];
      if (++index[axis] < desc.shape[axis]) break;
      offset -= index[axis] * desc.strides[axis];
      index[axis] = 0;
    }
  }
  return copy;
}

// The largest result of an op that sums, had all of its terms the same sign; 0 for another op.
double uncancelled_sum(KernelRequest request, void* const* inputs) {
  if (!request.op->is(kSums) || !contains(kFloat, request.in(0).dtype)) return 0;
  const TensorDesc desc = request.in(0);
  std::vector<char> sizes = dense_copy(desc, inputs[0]),
                    sums(std::max<size_t>(request.out().bytes(), 1));
  request.inputs[0] = TensorDesc(desc.dtype, desc.shape);
  if (!request.constants.empty()) request.constants[0] = nullptr;
  std::vector<void*> from(inputs, inputs + request.inputs.size());
  from[0] = sizes.data();
  void* to = sums.data();
  const KernelPtr oracle = make_oracle_kernel(request);
  return dispatch<kFloat>(desc.dtype, [&]<typename T>() {
    T* terms = reinterpret_cast<T*>(sizes.data());
    for (int64_t i = 0; i < desc.count(); ++i) terms[i] = static_cast<T>(magnitude(terms[i]));
    oracle->run({from.data(), &to, nullptr, nullptr, nullptr});
    return largest_of(reinterpret_cast<const T*>(sums.data()), request.out().count());
  });
}

// What a normalization tells beside its result as the mean of its first input cancels as a sum
// does: its largest term.
double uncancelled_mean(const KernelRequest& request, size_t output, void* const* inputs) {
  const auto& outputs = request.op->outputs;
  const bool mean = output < outputs.size() && outputs[output].name == std::string_view("mean");
  if (!mean || !contains(kFloat, request.in(0).dtype)) return 0;
  const TensorDesc& desc = request.in(0);
  const std::vector<char> terms = dense_copy(desc, inputs[0]);
  return dispatch<kFloat>(desc.dtype, [&]<typename T>() {
    return largest_of(reinterpret_cast<const T*>(terms.data()), desc.count());
  });
}

std::string compare_with_oracle(const KernelRequest& asked, void* const* inputs,
                                void* const* outputs) {
  KernelRequest request = asked;
  std::vector<std::vector<char>> copies;
  std::vector<const void*> got;
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    got.push_back(outputs[i]);
    const TensorDesc desc = request.outputs[i];
    if (desc.contiguous()) continue;
    got.back() = copies.emplace_back(dense_copy(desc, outputs[i])).data();
    request.outputs[i] = TensorDesc(desc.dtype, desc.shape);
  }
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
  std::optional<double> tolerance;
  if (!env_string("ANYMPS_CHECK_RTOL").empty()) tolerance = env_double("ANYMPS_CHECK_RTOL");
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    const std::string difference =
        result_difference(request, i, inputs, got[i], expected[i], tolerance);
    if (!difference.empty())
      return fmt::format("output '{}' {}",
                         request.op->outputs[std::min(i, request.op->outputs.size() - 1)].name,
                         difference);
  }
  return {};
}

// Four times the record's tolerance. A layer that rounds its own states to bytes meets some that
// lie half way between two: these are a step of 255 apart then, and so may be what follows.
double allowed_difference(const KernelRequest& request, DType dtype) {
  const double allowed = 4 * request.op->test.tolerance.of(dtype);
  const bool rounds =
      request.op->attr_index("dynamic_bytes") >= 0 && request.attrs.b("dynamic_bytes");
  return rounds ? std::max(allowed, 1.0 / 255) : allowed;
}

}  // namespace

std::string result_difference(const KernelRequest& request, size_t output, void* const* inputs,
                              const void* got, const void* expected,
                              std::optional<double> tolerance) {
  const TensorDesc& desc = request.outputs[output];
  return compare_any(
      desc, got, expected, tolerance.value_or(allowed_difference(request, desc.dtype)),
      std::max(uncancelled_sum(request, inputs), uncancelled_mean(request, output, inputs)),
      flushes_denormals());
}

void check_with_oracle(Driver& driver, const KernelChoice& choice, const KernelRequest& request,
                       void* const* inputs, void* const* outputs) {
  const DriverTraits traits = driver.traits();
  if (!traits.host_visible || !traits.computes) return;
  const std::string difference = compare_with_oracle(request, inputs, outputs);
  if (!difference.empty())
    fail(Code::kMismatch, "[{}] kernel {} differs from reference: {}{}", request.op->name,
         choice.name, difference,
         request.node.empty() ? "" : fmt::format(" (node \"{}\")", request.node));
}

}  // namespace anymps
