// SPDX-License-Identifier: Apache-2.0
// Gradients of pooling. Means and norms add the gradient of each window to all of its elements,
// which is a transposed convolution by ones; maxima add it to the place that won.
#include "ops/gradients/moves.h"
#include "ops/window.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;

struct Pool {
  TensorAxes axes;
  Shape in, out;
  Window window;
};

Pool pool_of(GradientContext& ctx) {
  const Term x = ctx.x();
  Pool pool{tensor_axes(ctx.attrs(), x.shape().size()), {}, {}, {}};
  for (size_t i = 0; i < pool.axes.count; ++i) {
    const Dim &in = x.shape()[pool.axes.spatial + i], &out = ctx.y().shape()[pool.axes.spatial + i];
    if (!in.known() || !out.known())
      ctx.refuse("spatial extents {} that are not known", to_string(x.shape()));
    pool.in.push_back(in.value());
    pool.out.push_back(out.value());
  }
  pool.window = resolve_window(ctx.attrs(), pool.in, Shape(ctx.attrs().ints("kernel")));
  return pool;
}

// The gradient of the windows' sums. Every channel is an image of its own.
Term spread_windows(GradientContext& ctx, const Pool& pool, Term dy) {
  const auto count = static_cast<int64_t>(pool.axes.count);
  const bool last = pool.axes.channel != 1;
  Ints to_first{0, count + 1}, to_last{0};
  for (int64_t i = 0; i < count; ++i) {
    to_first.push_back(i + 1);
    to_last.push_back(i + 2);
  }
  to_last.push_back(1);
  if (count > 3) ctx.refuse("{} spatial axes: at most 3 have a gradient", count);
  if (dy.type().static_shape() && element_count(to_shape(dy.shape())) == 0)
    return ctx.fill_like(ctx.x(), 0);
  if (last) dy = dy.op("transpose", {{"perm", to_first}});
  const Extent batch = ctx.extent(dy, 0), channels = ctx.extent(dy, 1);
  Extents images{-1, 1}, shape{batch, channels};
  Ints ones{1, 1}, pads(2 * pool.axes.count), rest(pool.axes.count);
  for (size_t i = 0; i < pool.axes.count; ++i) {
    images.emplace_back(pool.out[i]);
    shape.emplace_back(pool.in[i]);
    ones.push_back(pool.window.kernel[i]);
    const int64_t reach = pool.window.reach_end(i, pool.in[i], pool.out[i]);
    pads[i] = pool.window.pads_begin[i];
    pads[pool.axes.count + i] = std::max<int64_t>(reach, 0);
    rest[i] = std::max<int64_t>(-reach, 0);
  }
  const Term kernel = ctx.add("fill", {Term(), ctx.scalar(1, dy.dtype())}, {{"shape", ones}});
  const Ints strides(pool.window.strides.begin(), pool.window.strides.end()),
      dilations(pool.window.dilations.begin(), pool.window.dilations.end());
  Term dx = ctx.add(
      "conv_transpose", {ctx.reshape(dy, images), kernel},
      {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"output_padding", rest}});
  dx = ctx.reshape(dx, shape);
  return last ? dx.op("transpose", {{"perm", to_last}}) : dx;
}

// How many elements each window has, as factors that broadcast with y.
Term divided_by_counts(GradientContext& ctx, const Pool& pool, Term dy) {
  const bool padding = ctx.attrs().b("count_include_pad");
  for (size_t i = 0; i < pool.axes.count; ++i) {
    const Window& w = pool.window;
    Ints counts;
    for (int64_t at = 0; at < pool.out[i]; ++at) {
      int64_t count = 0;
      for (int64_t tap = 0; tap < w.kernel[i]; ++tap) {
        const int64_t place = at * w.strides[i] + tap * w.dilations[i] - w.pads_begin[i];
        count += padding ? place < pool.in[i] + w.pads_end[i] : place >= 0 && place < pool.in[i];
      }
      counts.push_back(std::max<int64_t>(count, 1));
    }
    Ints shape(static_cast<size_t>(dy.rank()), 1);
    shape[pool.axes.spatial + i] = pool.out[i];
    dy =
        dy / ctx.ints(counts).op("cast", {{"dtype", dy.dtype()}}).op("reshape", {{"shape", shape}});
  }
  return dy;
}

}  // namespace

GRADIENT(avg_pool) {
  const Pool pool = pool_of(ctx);
  ctx.set(0, spread_windows(ctx, pool, divided_by_counts(ctx, pool, ctx.dy())));
}

GRADIENT(lp_pool) {
  const Pool pool = pool_of(ctx);
  const Term x = ctx.x(), y = ctx.y(), zero = y == 0.0;
  const auto p = static_cast<double>(ctx.attrs().i("p"));
  const auto power = [&](const Term& value, double exponent) {
    return ctx.add("pow", {value, ctx.scalar(exponent, x.dtype())});
  };
  const Term scaled = where(zero, 0, ctx.dy() * power(where(zero, 1, y), 1 - p));
  ctx.set(0, spread_windows(ctx, pool, scaled) * x.op("sign") * power(x.op("abs"), p - 1));
}

GRADIENT(max_pool) {
  const Term places = ctx.output_count() > 1
                          ? ctx.y(1)
                          : ctx.add_all("max_pool", {ctx.x()}, ctx.attrs().named(), 2)[1];
  // A window that lies in the padding has the place -1.
  const Term none = places < 0;
  ctx.set(0, move_back(ctx, where(none, 0, places), where(none, 0, ctx.dy())));
}

}  // namespace anymps
