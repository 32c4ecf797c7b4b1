// SPDX-License-Identifier: Apache-2.0
// Gradients of slice and pad, which are each other's way back.
#include <algorithm>

#include "ops/gradient_parts.h"

namespace anymps {

namespace {

// dy with step - 1 zeros behind each element of an axis.
Term spread_axis(GradientContext& ctx, const Term& dy, int64_t axis, int64_t step) {
  const size_t rank = dy.rank(), at = axis;
  Ints pads(2 * (rank + 1), 0);
  pads[rank + 1 + at + 1] = step - 1;
  Extents shape;
  for (size_t i = 0; i < rank; ++i) shape.push_back(ctx.extent(dy, static_cast<int64_t>(i)));
  shape[at] = dy.shape()[at].value() * step;
  return ctx.reshape(dy.op("unsqueeze", {{"axes", Ints{axis + 1}}}).op("pad", {{"pads", pads}}),
                     shape);
}

// All numbers are known.
Term slice_back(GradientContext& ctx, const std::vector<SliceRange>& ranges) {
  Term dy = ctx.dy();
  const size_t rank = ranges.size();
  Ints pads(2 * rank, 0);
  bool border = false;
  for (size_t i = 0; i < rank; ++i) {
    auto [start, step, length] = ranges[i];
    const auto axis = static_cast<int64_t>(i);
    const int64_t extent = ctx.x().shape()[i].value();
    if (length == 0) {
      pads[i] = extent;
    } else {
      if (step < 0) {
        dy = dy.op("reverse", {{"axes", Ints{axis}}});
        start += (length - 1) * step;
        step = -step;
      }
      if (step > 1 && length > 1) {
        dy = spread_axis(ctx, dy, axis, step);
        length *= step;
      }
      pads[i] = start;
      pads[rank + i] = extent - start - length;
    }
    border = border || pads[i] != 0 || pads[rank + i] != 0;
  }
  return border ? dy.op("pad", {{"pads", pads}}) : dy;
}

// Steps of 1 from places, along axes of extents, that only running can tell.
Term slice_back(GradientContext& ctx) {
  const Term x = ctx.x(), dy = ctx.dy();
  const std::optional<Ints> axes = ctx.ints(3, "axes"), steps = ctx.ints(4, "steps");
  if (!axes || !steps) ctx.refuse("its axes and steps are not known");
  if (std::any_of(steps->begin(), steps->end(), [](int64_t step) { return step != 1; }))
    ctx.refuse("steps other than 1 along axes whose extents are not known");
  const Term starts = ctx.has(1) ? ctx.x(1).op("cast", {{"dtype", DType::kI64}})
                                 : ctx.ints(ctx.attrs().ints("starts"));
  const Dim count = starts.shape().at(0);
  if (!count.known()) ctx.refuse("the number of its axes is not known");
  Ints at = normalize_axes(*axes, x.rank(), "slice");
  for (int64_t i = 0; axes->empty() && i < count.value(); ++i) at.push_back(i);
  const auto one = [&](const Term& value, int64_t i) {
    return value.op("slice", {{"starts", Ints{i}}, {"ends", Ints{i + 1}}, {"axes", Ints{0}}});
  };
  const auto length = [&](const Term& value, int64_t axis) {
    const Extent extent = ctx.extent(value, axis);
    return extent.term ? extent.term : ctx.ints({extent.number});
  };
  const size_t rank = x.rank();
  std::vector<Term> pads(2 * rank, ctx.ints({0}));
  for (size_t i = 0; i < at.size(); ++i) {
    const Term given = one(starts, static_cast<int64_t>(i)), extent = length(x, at[i]);
    const Term start = ctx.add(
        "min", {ctx.add("max", {where(given < 0, given + extent, given), ctx.ints({0})}), extent});
    const size_t axis = at[i];
    pads[axis] = start;
    pads[rank + axis] = extent - start - length(dy, at[i]);
  }
  return ctx.add("pad", {dy, ctx.add("concat", pads)});
}

// Pads given for some axes, with 0 for the others.
Ints pads_of_all_axes(GradientContext& ctx, const std::optional<Ints>& pads) {
  const std::optional<Ints> axes = ctx.ints(3, "pads");
  if (!pads || !axes) ctx.refuse("pads for some axes only, which are not known");
  const size_t rank = ctx.x().rank();
  const Ints places = normalize_axes(*axes, ctx.x().rank(), "pad");
  Ints all(2 * rank, 0);
  for (size_t i = 0; i < places.size(); ++i) {
    all[places[i]] = (*pads)[i];
    all[static_cast<size_t>(places[i]) + rank] = (*pads)[i + places.size()];
  }
  return all;
}

}  // namespace

COMPLEX_GRADIENT(slice) {
  const Term x = ctx.x();
  const auto starts = ctx.ints(1, "starts"), ends = ctx.ints(2, "ends"), axes = ctx.ints(3, "axes"),
             steps = ctx.ints(4, "steps");
  if (x.rank() == 0) return ctx.set(0, ctx.dy());
  if (starts && ends && axes && steps && x.type().static_shape())
    return ctx.set(0, slice_back(ctx, slice_ranges(to_shape(x.shape()), *starts, *ends, *axes,
                                                   *steps, "slice")));
  ctx.set(0, slice_back(ctx));
}

COMPLEX_GRADIENT(pad) {
  const std::string& mode = ctx.attrs().s("mode");
  if (mode != "constant" && mode != "anti_wrap") return ctx.set(0, move_back(ctx));
  std::optional<Ints> pads = ctx.ints(1, "pads");
  if (ctx.has(3)) pads = pads_of_all_axes(ctx, pads);
  const Term dy = ctx.dy();
  if (mode == "anti_wrap") {  // what is moved changes its sign, too
    if (!pads) ctx.refuse("its pads are not known");
    return ctx.set(0, dy.op("pad_gradient", {{"pads", *pads}, {"mode", mode}}));
  }
  if (ctx.wants(0)) {
    if (pads) {
      Ints back = *pads;
      for (int64_t& pad : back) pad = -pad;
      ctx.set(0, dy.op("pad", {{"pads", back}}));
    } else {
      ctx.set(0, ctx.add("pad", {dy, -ctx.x(1)}));
    }
  }
  if (ctx.wants(2)) {  // the value has the gradient of the border
    std::vector<Term> inputs{ctx.fill_like(ctx.x(), 0)};
    if (!pads) inputs.push_back(ctx.x(1));
    const Term border = ctx.add("pad", inputs, {{"pads", pads.value_or(Ints{})}, {"value", 1.0}});
    ctx.set(2, ctx.reshape_like(ctx.sum(dy * border, axes_from(0, dy.rank()), false), ctx.x(2)));
  }
}

}  // namespace anymps
