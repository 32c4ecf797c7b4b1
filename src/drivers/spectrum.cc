// SPDX-License-Identifier: Apache-2.0
#include "drivers/spectrum.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

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

SpectrumPlan SpectrumPlan::fft(const Op& op, const Attrs& attrs, const Shape& x, const Shape& y,
                               const std::vector<int64_t>& axes) {
  require(!axes.empty(), "[{}] axes must name at least one axis", op.name);
  SpectrumPlan plan(x);
  const bool inverse = attrs.b("inverse"), to_real = op.name == "hermitean_to_real_fft";
  std::vector<size_t> places;
  for (const int64_t axis : axes)
    places.push_back(
        static_cast<size_t>(normalize_axis(axis, static_cast<int64_t>(x.size()), op.name.c_str())));
  double count = 1;
  for (size_t i = 0; i < places.size(); ++i) {
    // The halved axis is transformed first on the way in and last on the way out.
    const bool last = to_real ? i + 1 == places.size() : i == 0;
    const size_t axis = to_real ? places[i] : places[(i + places.size() - 1) % places.size()];
    const int64_t n = last && to_real ? y[axis] : x[axis];
    plan.add(axis, n, last ? y[axis] : n, inverse, last && to_real);
    count *= static_cast<double>(n);
  }
  const std::string& scaling = attrs.s("scaling");
  if (scaling == "size") plan.scale = 1 / count;
  if (scaling == "unitary") plan.scale = 1 / std::sqrt(count);
  return plan;
}

SpectrumPlan SpectrumPlan::dft(const Attrs& attrs, const Shape& x, const Shape& y, int64_t axis,
                               int64_t length) {
  SpectrumPlan plan(x);
  const bool inverse = attrs.b("inverse"), onesided = attrs.b("onesided");
  const auto place = static_cast<size_t>(axis);
  const int64_t n = length > 0 ? length : inverse && onesided ? 2 * (x[place] - 1) : x[place];
  plan.add(place, n, y[place], inverse, inverse && onesided);
  if (inverse) plan.scale = 1 / static_cast<double>(n);
  return plan;
}

SpectrumPlan SpectrumPlan::frames(const Shape& frames, int64_t bins, int64_t length) {
  SpectrumPlan plan(frames);
  plan.add(frames.size() - 1, length, bins, false, false);
  return plan;
}

}  // namespace anymps
