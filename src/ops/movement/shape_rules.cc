// SPDX-License-Identifier: Apache-2.0
// Gradients of ops that move elements: shapes, slices, joins. Each is linear, and its gradient is
// the way back.
#include <algorithm>

#include "ops/gradient_parts.h"

namespace anymps {

namespace {

void reshape_back(GradientContext& ctx) { ctx.set(0, ctx.reshape_like(ctx.dy(), ctx.x())); }

// Parts of a tensor along an axis, one for each of `like`.
std::vector<Term> parts(GradientContext& ctx, const Term& value, int64_t axis,
                        const std::vector<Term>& like) {
  Ints sizes;
  for (const Term& term : like) {
    const Dim& extent = term.shape().at(axis);
    if (extent.known()) sizes.push_back(extent.value());
  }
  if (sizes.size() == like.size())
    return ctx.add_all("split", {value}, {{"axis", axis}, {"sizes", sizes}}, like.size());
  std::vector<Term> results;
  Term first = ctx.ints({0});
  for (const Term& term : like) {
    const Extent extent = ctx.extent(term, axis);
    const Term last = first + (extent.term ? extent.term : ctx.ints({extent.number}));
    results.push_back(ctx.add("slice", {value, first, last, ctx.ints({axis})}));
    first = last;
  }
  return results;
}

}  // namespace

COMPLEX_GRADIENT(reshape) { reshape_back(ctx); }
COMPLEX_GRADIENT(flatten) { reshape_back(ctx); }
COMPLEX_GRADIENT(squeeze) { reshape_back(ctx); }
COMPLEX_GRADIENT(unsqueeze) { reshape_back(ctx); }
COMPLEX_GRADIENT(expand) { ctx.set(0, ctx.dy()); }

COMPLEX_GRADIENT(transpose) {
  const Ints& given = ctx.attrs().ints("perm");
  if (given.empty()) return ctx.set(0, ctx.dy().op("transpose"));
  const Ints perm = normalize_axes(given, ctx.x().rank(), "transpose");
  Ints inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<int64_t>(i);
  ctx.set(0, ctx.dy().op("transpose", {{"perm", inverse}}));
}

static NamedAttrs block_attrs(const Attrs& attrs) {
  return {{"block", attrs.i("block")}, {"mode", attrs.s("mode")}, {"layout", attrs.s("layout")}};
}
COMPLEX_GRADIENT(depth_to_space) {
  ctx.set(0, ctx.dy().op("space_to_depth", block_attrs(ctx.attrs())));
}
COMPLEX_GRADIENT(space_to_depth) {
  ctx.set(0, ctx.dy().op("depth_to_space", block_attrs(ctx.attrs())));
}

COMPLEX_GRADIENT(concat) {
  std::vector<Term> xs;
  for (size_t i = 0; i < ctx.input_count(); ++i) xs.push_back(ctx.x(i));
  const std::vector<Term> dxs = parts(ctx, ctx.dy(), axis_of(ctx), xs);
  for (size_t i = 0; i < dxs.size(); ++i) ctx.set(i, dxs[i]);
}

COMPLEX_GRADIENT(stack) {
  const int64_t rank = ctx.x().rank() + 1, given = ctx.attrs().i("axis");
  const int64_t axis = given < 0 ? given + rank : given;
  const std::vector<Term> dxs =
      ctx.add_all("split", {ctx.dy()}, {{"axis", axis}, {"sizes", Ints(ctx.input_count(), 1)}},
                  ctx.input_count());
  for (size_t i = 0; i < dxs.size(); ++i)
    if (ctx.wants(i)) ctx.set(i, dxs[i].op("squeeze", {{"axes", Ints{axis}}}));
}

COMPLEX_GRADIENT(split) {
  std::vector<Term> dys;
  for (size_t i = 0; i < ctx.output_count(); ++i) dys.push_back(ctx.dy_or_zero(i));
  ctx.set(0, ctx.add("concat", dys, {{"axis", ctx.attrs().i("axis")}}));
}

COMPLEX_GRADIENT(tile) {
  const Term x = ctx.x();
  std::optional<Ints> repeats = ctx.ints(1, "repeats");
  if (!repeats) ctx.refuse("the repeats are not known");
  if (x.rank() == 0) return ctx.set(0, ctx.dy());
  Extents shape;
  Ints axes;
  for (int64_t i = 0; i < x.rank(); ++i) {
    axes.push_back(2 * i);
    shape.emplace_back(repeats->at(i));
    shape.push_back(ctx.extent(x, i));
  }
  ctx.set(0, ctx.sum(ctx.reshape(ctx.dy(), shape), axes, false));
}

COMPLEX_GRADIENT(reverse) {
  ctx.set(0, ctx.dy().op("reverse", {{"axes", ctx.attrs().ints("axes")}}));
}

COMPLEX_GRADIENT(trilu) {
  std::vector<Term> inputs{ctx.dy()};
  if (ctx.has(1)) inputs.push_back(ctx.x(1));
  ctx.set(0,
          ctx.add("trilu", inputs, {{"k", ctx.attrs().i("k")}, {"upper", ctx.attrs().b("upper")}}));
}

ZERO_GRADIENT(shape, "reads the shape alone");
ZERO_GRADIENT(size, "reads the shape alone");

}  // namespace anymps
