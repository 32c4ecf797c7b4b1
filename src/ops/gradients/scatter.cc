// SPDX-License-Identifier: Apache-2.0
// Gradients of scatters: what an update did to an element is read where its index points.
#include "ops/gradients/axes.h"
#include "ops/gradients/conjugate.h"

namespace anymps {

namespace {

// The three scatters differ in how an index names a place.
class Places {
 public:
  Places(GradientContext& ctx, const char* gather, const char* attr)
      : ctx_(ctx), gather_(gather), attr_{attr, ctx.attrs().i(attr)} {
    if (!ctx.has(3)) return;
    const auto axis = ctx.ints(3, "shape");
    if (!axis) ctx.refuse("its axis is not known");
    attr_ = {attr, axis->at(0)};
  }
  Term read(const Term& y) { return ctx_.add(gather_, {y, ctx_.x(1)}, {attr_}); }
  Term write(const Term& updates, const Term& data, const char* mode) {
    return ctx_.add(ctx_.op().name.c_str(), {updates, ctx_.x(1), data}, {attr_, {"mode", mode}});
  }

 private:
  GradientContext& ctx_;
  const char* gather_;
  NamedAttr attr_;
};

Term numbers_like(GradientContext& ctx, const Term& like) {
  const Term all =
      ctx.add("range", {ctx.scalar(0, DType::kI64), like.op("size"), ctx.scalar(1, DType::kI64)});
  return ctx.reshape_like(all, like);
}

// Of several updates of one element, the last one counts.
void set_back(GradientContext& ctx, Places places) {
  const Term dy = ctx.dy(), numbers = numbers_like(ctx, ctx.x());
  const Term none = ctx.add("fill", {ctx.shape_of(dy), ctx.scalar(-1, DType::kI64)});
  const Term winners = places.write(numbers, none, "set");
  ctx.set(0, where(places.read(winners) == numbers, places.read(dy), 0));
  if (ctx.has(2)) ctx.set(2, where(winners == none, dy, 0));
}

// The gradient is shared by all that are equal to the extremum.
void extremum_back(GradientContext& ctx, Places places) {
  const Term y = ctx.y(), data = ctx.has(2) ? ctx.x(2) : ctx.fill_like(y, 0);
  const auto number = [&](const Term& equal) { return equal.op("cast", {{"dtype", y.dtype()}}); };
  const Term here = number(ctx.x() == places.read(y)), there = number(data == y);
  const Term share = ctx.dy() / places.write(here, there, "add");
  ctx.set(0, here * places.read(share));
  if (ctx.has(2)) ctx.set(2, there * share);
}

void scatter_back(GradientContext& ctx, Places places) {
  const std::string& mode = ctx.attrs().s("mode");
  if (mode == "set") return set_back(ctx, places);
  if (mode == "min" || mode == "max") return extremum_back(ctx, places);
  const Term dy = ctx.dy();
  if (mode == "add" || mode == "sub") {
    const Term read = places.read(dy);
    ctx.set(0, mode == "add" ? read : -read);
    if (ctx.has(2)) ctx.set(2, dy);
    return;
  }
  // y is data times or over the product of its updates, none of which may be 0.
  const Term updates = conjugated(ctx.x());
  const Term factors = places.write(updates, ctx.fill_like(ctx.y(), 1), "mul");
  const Term each = places.read(dy * conjugated(ctx.y())) / updates;
  ctx.set(0, mode == "mul" ? each : -each);
  if (ctx.has(2)) ctx.set(2, mode == "mul" ? dy * factors : dy / factors);
}

}  // namespace

COMPLEX_GRADIENT(scatter) { scatter_back(ctx, Places(ctx, "gather", "axis")); }
COMPLEX_GRADIENT(scatter_nd) { scatter_back(ctx, Places(ctx, "gather_nd", "batch_dims")); }
COMPLEX_GRADIENT(scatter_along_axis) {
  scatter_back(ctx, Places(ctx, "gather_along_axis", "axis"));
}

}  // namespace anymps
