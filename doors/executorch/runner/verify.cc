// SPDX-License-Identifier: Apache-2.0
#include "verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/npy.h"

namespace anymps::runner {

namespace {

constexpr double kFp16 = 2e-2;

bool is_half(amps::DType dtype) { return dtype == amps::DType::f16 || dtype == amps::DType::bf16; }

bool is_float(amps::DType dtype) {
  return dtype == amps::DType::f32 || dtype == amps::DType::f16 || dtype == amps::DType::bf16 ||
         dtype == amps::DType::f64;
}

std::vector<int64_t> index_of(int64_t element, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = element % shape[i];
    element /= shape[i];
  }
  return index;
}

std::string compare(const common::Array& got, const common::Array& expected,
                    const Tolerance& tolerance) {
  if (got.shape != expected.shape || got.dtype != expected.dtype)
    return fmt::format("expected {}[{}], got {}[{}]", amps::name(expected.dtype),
                       fmt::join(expected.shape, ", "), amps::name(got.dtype),
                       fmt::join(got.shape, ", "));
  if (got.data == expected.data) return "";
  const size_t count = expected.count(), size = amps::size_of(expected.dtype);
  const bool floats = is_float(expected.dtype);
  double rtol = 0, atol = 0;
  if (floats) {
    double largest = 0;
    for (size_t i = 0; i < count; ++i)
      if (const double e = std::abs(common::element(expected, i)); std::isfinite(e))
        largest = std::max(largest, e);
    // Unless the user says so, nothing is closer than its type can tell.
    const double least = tolerance.scaled && is_half(expected.dtype) ? kFp16 : 0;
    rtol = std::max(tolerance.rtol, least);
    atol = std::max(tolerance.atol, least) * (tolerance.scaled ? std::min(1.0, largest) : 1.0);
  }
  size_t differing = 0, worst = 0;
  double worst_excess = -1, worst_difference = 0, worst_allowed = 0;
  for (size_t i = 0; i < count; ++i) {
    if (std::memcmp(got.data.data() + i * size, expected.data.data() + i * size, size) == 0)
      continue;
    const double e = common::element(expected, i), g = common::element(got, i);
    if (floats && e == g) continue;  // zeros of both signs
    if (floats && std::isnan(e) && std::isnan(g)) continue;
    const double allowed = atol + rtol * std::abs(e), difference = std::abs(e - g);
    if (floats && std::isfinite(e) && std::isfinite(g) && difference <= allowed) continue;
    ++differing;
    const double excess = std::isfinite(difference) ? difference - allowed : INFINITY;
    if (excess <= worst_excess) continue;
    worst = i;
    worst_excess = excess;
    worst_difference = difference;
    worst_allowed = allowed;
  }
  if (differing == 0) return "";
  return fmt::format(
      "{} of {} elements differ; the worst is [{}]: expected {:.9g}, got {:.9g} (difference "
      "{:.3g}, "
      "allowed {:.3g})",
      differing, count, fmt::join(index_of(worst, expected.shape), ", "),
      common::element(expected, worst), common::element(got, worst), worst_difference,
      worst_allowed);
}

}  // namespace

Tolerance tolerance_of(const amps::Program& program, const std::string& method) {
  for (const auto& delegate : program.delegates(method)) {
    const std::string fp16 = program.delegate_option(delegate.index, "use_fp16", method);
    if (!fp16.empty() && fp16[0] != 0) return {kFp16, kFp16, true};
  }
  return {};
}

std::string difference(const std::vector<amps::Tensor>& got,
                       const std::vector<amps::Tensor>& expected, const Tolerance& tolerance) {
  if (got.size() < expected.size())
    return fmt::format("the bundle expects {} outputs, the program gives {}", expected.size(),
                       got.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i]) continue;
    const std::string text =
        compare(common::to_array(got[i]), common::to_array(expected[i]), tolerance);
    if (!text.empty()) return fmt::format("output {}: {}", i, text);
  }
  return "";
}

}  // namespace anymps::runner
