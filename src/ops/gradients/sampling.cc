// SPDX-License-Identifier: Apache-2.0
// Gradients of ops that sample pictures.
#include "ops/gradient.h"

namespace anymps {

using Ints = std::vector<int64_t>;

// y[n, p] = theta[n] @ [p, 1]: the places p are those of the identity.
GRADIENT(affine_grid) {
  const Term theta = ctx.x(0), dy = ctx.dy();
  const int64_t d = dy.rank() - 2;
  const std::optional<Ints> given = ctx.ints(1, "size");
  if (!given) ctx.refuse("its size is not known");
  Ints size = *given;
  size.at(0) = 1;
  Ints identity;
  for (int64_t i = 0; i < d; ++i)
    for (int64_t j = 0; j <= d; ++j) identity.push_back(i == j);
  const Term unit = ctx.ints(identity)
                        .op("cast", {{"dtype", theta.dtype()}})
                        .op("reshape", {{"shape", Ints{1, d, d + 1}}});
  int64_t count = 1;
  for (size_t i = 2; i < size.size(); ++i) count *= size[i];
  const Term places =
      unit.op("affine_grid", {{"size", size}, {"align_corners", ctx.attrs().b("align_corners")}})
          .op("reshape", {{"shape", Ints{count, d}}, {"allow_zero", true}});
  const Term ones =
      ctx.add("fill", {Term(), ctx.scalar(1, theta.dtype())}, {{"shape", Ints{count, 1}}});
  const Term flat = ctx.reshape(dy, {ctx.extent(dy, 0), count, d});
  ctx.set(0, ctx.add("matmul", {flat, ctx.add("concat", {places, ones}, {{"axis", 1}})},
                     {{"transpose_a", true}}));
}

namespace {

// Where along an axis of extent n the samples lie, in elements.
Term places_along(GradientContext& ctx, const Term& coordinates, int64_t n) {
  const auto extent = static_cast<double>(n);
  Term places = coordinates;
  if (ctx.attrs().b("normalized"))
    places = ctx.attrs().b("align_corners") ? (places + 1) * ((extent - 1) / 2)
                                            : (places + 1) * (extent / 2) - 0.5;
  if (ctx.attrs().s("padding") == "border")
    places = places.op("clamp", {{"min", 0.0}, {"max", extent - 1}});
  return places;
}

}  // namespace

// Written out: every sample is a sum of its corners, each picked from x and weighted.
GRADIENT(grid_sample) {
  const Term x = ctx.x(0), grid = ctx.x(1);
  const Attrs& attrs = ctx.attrs();
  const bool outside = attrs.s("padding") == "constant", linear = attrs.s("mode") == "linear";
  if (attrs.s("mode") == "cubic" || (!linear && attrs.s("nearest") != "round_to_even"))
    ctx.refuse("only linear samples, and nearest ones that round to even, have a gradient");
  if (attrs.b("relative") || (!outside && attrs.s("padding") != "border"))
    ctx.refuse("only absolute places, with a constant or the border around x, have a gradient");
  if (attrs.s("layout") != "channels_first" || !x.type().static_shape() ||
      !grid.type().static_shape())
    ctx.refuse("only channels_first and known shapes have a gradient");
  const Shape in = to_shape(x.shape()), to = to_shape(grid.shape());
  const size_t d = in.size() - 2;
  int64_t elements = 1, samples = 1;
  for (size_t i = 0; i < d; ++i) {
    elements *= in[2 + i];
    samples *= to[1 + i];
  }
  const Term flat =
      x.op("reshape", {{"shape", Ints{in[0], in[1], elements}}, {"allow_zero", true}});
  const Term points = grid.op(
      "reshape", {{"shape", Ints{in[0], samples, static_cast<int64_t>(d)}}, {"allow_zero", true}});
  std::vector<Term> low(d), rest(d);  // the corner below, and how far above it
  for (size_t i = 0; i < d; ++i) {
    const auto at = static_cast<int64_t>(d - 1 - i);  // the innermost axis comes first
    const Term one =
        points.op("slice", {{"starts", Ints{at}}, {"ends", Ints{at + 1}}, {"axes", Ints{2}}})
            .op("squeeze", {{"axes", Ints{2}}});
    const Term place = places_along(ctx, one, in[2 + i]);
    low[i] = place.op(linear ? "floor" : "rint");
    rest[i] = place - low[i];
  }
  Term y;
  for (size_t corner = 0; corner < (linear ? size_t{1} << d : 1); ++corner) {
    Term index, weight, inside;
    for (size_t i = 0; i < d; ++i) {
      const bool high = corner >> i & 1;
      const auto last = static_cast<double>(in[2 + i] - 1);
      const Term place = high ? low[i] + 1 : low[i];
      const Term legal = both(place >= 0, place <= last);
      inside = inside ? both(inside, legal) : legal;
      const Term number =
          place.op("clamp", {{"min", 0.0}, {"max", last}}).op("cast", {{"dtype", DType::kI64}});
      index = index ? index * static_cast<double>(in[2 + i]) + number : number;
      if (!linear) continue;
      const Term share = high ? rest[i] : 1 - rest[i];
      weight = weight ? weight * share : share;
    }
    Term value = ctx.add("gather", {flat, index}, {{"axis", 2}, {"batch_dims", 1}});
    const auto over_channels = [](const Term& t) { return t.op("unsqueeze", {{"axes", Ints{1}}}); };
    if (outside) value = where(over_channels(inside), value, attrs.f("constant_value"));
    if (linear) {
      if (weight.dtype() != x.dtype()) weight = weight.op("cast", {{"dtype", x.dtype()}});
      value = value * over_channels(weight);
    }
    y = y ? y + value : value;
  }
  ctx.through({ctx.reshape_like(y, ctx.y())});
}

}  // namespace anymps
