// SPDX-License-Identifier: Apache-2.0
// Gradients of Fourier transforms, which are linear: the way back is the transform with the other
// sign and the same scale.
#include <numeric>

#include "ops/gradient_parts.h"

namespace anymps {

namespace {

NamedAttrs other_sign(GradientContext& ctx, const Ints& axes) {
  return {{"axes", axes},
          {"inverse", !ctx.attrs().b("inverse")},
          {"scaling", ctx.attrs().s("scaling")}};
}

Ints transformed_axes(GradientContext& ctx) {
  const std::optional<Ints> axes = ctx.ints(1, "axes");
  if (!axes) ctx.refuse("its axes are not known");
  return *axes;
}

// value cut, or filled with 0, to an extent of an axis.
Term fitted(const Term& value, int64_t axis, int64_t from, int64_t to) {
  if (from == to) return value;
  const size_t rank = value.rank();
  Ints pads(2 * rank, 0);
  pads[rank + static_cast<size_t>(axis)] = to - from;
  return value.op("pad", {{"pads", pads}});
}

int64_t known(GradientContext& ctx, const Term& value, int64_t axis) {
  const Dim& extent = value.shape().at(axis);
  if (!extent.known()) ctx.refuse("extents {} that are not known", to_string(value.shape()));
  return extent.value();
}

// How often each of the first n/2+1 results stands in the whole spectrum, along an axis.
Term multiplicity(GradientContext& ctx, int64_t bins, int64_t length, int64_t axis, int64_t rank,
                  DType dtype) {
  Ints counts(bins, 2), shape(rank, 1);
  counts[0] = 1;
  if (length % 2 == 0 && bins == length / 2 + 1) counts.back() = 1;
  shape[axis] = bins;
  return ctx.ints(counts).op("cast", {{"dtype", dtype}}).op("reshape", {{"shape", shape}});
}

}  // namespace

COMPLEX_GRADIENT(fft) {
  const Term dx = ctx.dy().op("fft", other_sign(ctx, transformed_axes(ctx)));
  ctx.set(0, ctx.x().dtype() == dx.dtype() ? dx : dx.op("cast", {{"dtype", ctx.x().dtype()}}));
}

COMPLEX_GRADIENT(real_to_hermitean_fft) {
  const Ints axes = transformed_axes(ctx);
  const int64_t rank = ctx.x().rank(), last = axes.back() < 0 ? axes.back() + rank : axes.back();
  const Term whole = fitted(ctx.dy(), last, known(ctx, ctx.dy(), last), known(ctx, ctx.x(), last));
  ctx.set(0, whole.op("fft", other_sign(ctx, axes)).op("cast", {{"dtype", ctx.x().dtype()}}));
}

COMPLEX_GRADIENT(hermitean_to_real_fft) {
  const Ints axes = transformed_axes(ctx);
  const int64_t rank = ctx.x().rank(), last = axes.back() < 0 ? axes.back() + rank : axes.back();
  const Term dx = ctx.dy().op("real_to_hermitean_fft", other_sign(ctx, axes));
  ctx.set(0, dx * multiplicity(ctx, known(ctx, ctx.x(), last), known(ctx, ctx.y(), last), last,
                               rank, dx.dtype()));
}

GRADIENT(dft) {
  const Term x = ctx.x();
  const int64_t axis = known_axis(ctx, 2, x), rank = x.rank();
  const int64_t signal = known(ctx, x, axis), parts = known(ctx, x, rank - 1);
  const bool inverse = ctx.attrs().b("inverse"), onesided = ctx.attrs().b("onesided");
  const int64_t bins = known(ctx, ctx.y(), axis);
  int64_t length = bins;  // of the transform
  if (onesided && !inverse) {
    const std::optional<Dims>& given = ctx.has(1) ? ctx.x(1).type().content : std::nullopt;
    if (ctx.has(1) && (!given || !given->at(0).known())) ctx.refuse("its length is not known");
    length = ctx.has(1) ? given->at(0).value() : ctx.attrs().i("length");
    if (length == 0) length = signal;
  }
  const auto n = static_cast<double>(length);
  Term dx;
  if (inverse && onesided) {
    dx = ctx.dy().op("dft", {{"axis", axis}, {"onesided", true}});
    const int64_t half = known(ctx, dx, axis);
    dx = dx * multiplicity(ctx, half, length, axis, rank, dx.dtype()) / n;
    dx = fitted(dx, axis, half, signal);
  } else {
    const Term whole = fitted(ctx.dy(), axis, bins, length);
    dx = whole.op("dft", {{"axis", axis}, {"inverse", !inverse}});
    dx = fitted(inverse ? dx / n : dx * n, axis, length, signal);
  }
  ctx.set(0, fitted(dx, rank - 1, 2, parts));
}

GRADIENT(stft) {  // frames picked out of the signal, scaled by the window, transformed
  const Term x = ctx.x(0);
  const int64_t samples = known(ctx, x, 1), frames = known(ctx, ctx.y(), 1),
                bins = known(ctx, ctx.y(), 2);
  const auto number = [&](size_t i, const char* attr) {
    if (!ctx.has(i)) return ctx.attrs().i(attr);
    const std::optional<Dims>& content = ctx.x(i).type().content;
    if (!content || !content->at(0).known()) ctx.refuse("its {} is not known", attr);
    return content->at(0).value();
  };
  const int64_t step = number(1, "frame_step");
  int64_t length = number(3, "frame_length");
  if (length == 0) length = ctx.has(2) ? known(ctx, ctx.x(2), 0) : samples;
  Ints places;
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t j = 0; j < length; ++j) places.push_back(f * step + j);
  Term signal = x.rank() == 2 ? x.op("unsqueeze", {{"axes", Ints{2}}}) : x;
  const Term list = ctx.ints(places).op("reshape", {{"shape", Ints{frames, length}}});
  Term picked = ctx.add("gather", {signal, list}, {{"axis", 1}});
  if (ctx.has(2)) {
    const Term window = fitted(ctx.x(2), 0, known(ctx, ctx.x(2), 0), length);
    picked = picked * window.op("unsqueeze", {{"axes", Ints{1}}});
  }
  Term y = picked.op("dft", {{"axis", 2}, {"onesided", ctx.attrs().b("onesided")}});
  if (known(ctx, y, 2) != bins) ctx.refuse("{} bins of a frame of {}", bins, length);
  ctx.through({y});
}

ZERO_GRADIENT(mel_weight_matrix, "made from whole numbers and rounded edges");
ZERO_GRADIENT(window, "it follows from a number of elements");

}  // namespace anymps
