// SPDX-License-Identifier: Apache-2.0
#include "semantics/signal/spectrum.h"

#include <algorithm>
#include <cmath>

namespace anymps {

SpectrumPlan::SpectrumPlan(Shape shape)
    : start(shape), most(element_count(shape)), now_(std::move(shape)) {}

void SpectrumPlan::add(size_t axis, int64_t n, int64_t out, bool inverse, bool hermitean) {
  SpectrumPass pass;
  for (size_t i = 0; i < axis; ++i) pass.outer *= now_[i];
  for (size_t i = axis + 1; i < now_.size(); ++i) pass.inner *= now_[i];
  pass.in = now_[axis];
  pass.n = n;
  pass.out = out;
  pass.inverse = inverse;
  pass.hermitean = hermitean;
  now_[axis] = out;
  most = std::max(most, element_count(now_));
  if (pass.lines() > 0 && n > 0) passes.push_back(pass);
}

SpectrumPlan SpectrumPlan::fft(const Shape& x, const Shape& y, const std::vector<size_t>& axes,
                               bool inverse, bool to_real, SpectrumScaling scaling) {
  SpectrumPlan plan(x);
  double count = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    // The halved axis is transformed first on the way in and last on the way out.
    const bool last = to_real ? i + 1 == axes.size() : i == 0;
    const size_t axis = to_real ? axes[i] : axes[(i + axes.size() - 1) % axes.size()];
    const int64_t n = last && to_real ? y[axis] : x[axis];
    plan.add(axis, n, last ? y[axis] : n, inverse, last && to_real);
    count *= static_cast<double>(n);
  }
  if (scaling == SpectrumScaling::kSize) plan.scale = 1 / count;
  if (scaling == SpectrumScaling::kUnitary) plan.scale = 1 / std::sqrt(count);
  return plan;
}

SpectrumPlan SpectrumPlan::dft(const Shape& x, const Shape& y, size_t axis, int64_t length,
                               bool inverse, bool onesided) {
  SpectrumPlan plan(x);
  const int64_t n = length > 0 ? length : inverse && onesided ? 2 * (x[axis] - 1) : x[axis];
  plan.add(axis, n, y[axis], inverse, inverse && onesided);
  if (inverse) plan.scale = 1 / static_cast<double>(n);
  return plan;
}

SpectrumPlan SpectrumPlan::frames(const Shape& frames, int64_t bins, int64_t length) {
  SpectrumPlan plan(frames);
  plan.add(frames.size() - 1, length, bins, false, false);
  return plan;
}

}  // namespace anymps
