// SPDX-License-Identifier: Apache-2.0
// Gradients of the normalizations that train, and of their gradients.
#include "ops/gradient_parts.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;

// A parameter or statistic in x's dtype, and what was computed back in another.
Term as(const Term& value, DType dtype) {
  return value.dtype() == dtype ? value : value.op("cast", {{"dtype", dtype}});
}

int64_t channel_axis(GradientContext& ctx, const Term& x) {
  return ctx.attrs().s("layout") == "channels_last" ? x.rank() - 1 : 1;
}

// The outputs that the node has, in its dtypes.
void through_formula(GradientContext& ctx, const std::vector<Term>& all) {
  std::vector<Term> outputs;
  for (size_t i = 0; i < ctx.output_count(); ++i) outputs.push_back(as(all[i], ctx.y(i).dtype()));
  ctx.through(outputs);
}

// dx of a normalization by statistics over `axes`, with the scaled gradient dz of z.
Term row_back(GradientContext& ctx, const Term& dz, const Term& z, const Term& inv_std,
              const Ints& axes, bool centered) {
  const Term moment = z * ctx.mean(dz * z, axes);
  return inv_std * (centered ? dz - ctx.mean(dz, axes) - moment : dz - moment);
}

// layer_norm's and rms_norm's gradients, written out.
void row_norm_gradient(GradientContext& ctx, bool centered) {
  const Term dy = ctx.x(0), x = ctx.x(1);
  const size_t last = centered ? 3 : 2;
  const int64_t given = ctx.attrs().i("axis"), axis = given < 0 ? given + x.rank() : given;
  const Ints axes = axes_from(axis, x.rank()), rows = axes_from(0, axis);
  Term distance = x, inv_std;
  if (centered) distance = x - (ctx.has(2) ? as(ctx.x(2), x.dtype()) : ctx.mean(x, axes));
  if (ctx.has(last))
    inv_std = as(ctx.x(last), x.dtype());
  else
    inv_std = (ctx.mean(distance * distance, axes) + ctx.attrs().f("epsilon")).op("rsqrt");
  const Term z = distance * inv_std;
  const auto sum_rows = [&](const Term& value) {
    return rows.empty() ? value : ctx.sum(value, rows, false);
  };
  const Term dz = ctx.has(last + 1) ? dy * as(ctx.x(last + 1), x.dtype()) : dy;
  std::vector<Term> all = {row_back(ctx, dz, z, inv_std, axes, centered)};
  if (ctx.output_count() > 1) all.push_back(sum_rows(dy * z));
  if (ctx.output_count() > 2) all.push_back(sum_rows(dy));
  // Without rows to sum, dbeta would be dy itself.
  if (all.size() > 2 && rows.empty()) all[2] = all[2].op("identity");
  through_formula(ctx, all);
}

}  // namespace

GRADIENT(batch_norm_training) {
  const Term x = ctx.x(0);
  bool others = false;
  for (size_t i = 1; i < ctx.output_count(); ++i) others |= static_cast<bool>(ctx.dy(i));
  if (!others) {
    std::vector<Term> inputs{ctx.dy(), x, ctx.y(1), ctx.y(2)};
    if (ctx.has(1)) inputs.push_back(ctx.x(1));
    const std::vector<Term> results = ctx.add_all("batch_norm_training_gradient", inputs,
                                                  {{"layout", ctx.attrs().s("layout")}}, 3);
    ctx.set(0, results[0]);
    for (size_t i = 1; i < 3; ++i)
      if (ctx.has(i)) ctx.set(i, as(results[i], ctx.x(i).dtype()));
    return;
  }
  const int64_t axis = channel_axis(ctx, x), rank = x.rank();
  const Ints axes = axes_without(axis, rank);
  const auto channels = [&](const Term& value) { return ctx.per_channel(value, axis, rank); };
  const Term mean = ctx.sum(x, axes, false) / ctx.ratio(x, ctx.sum(x, axes, false));
  const Term distance = x - channels(mean);
  const Term count = ctx.ratio(x, mean);
  const Term squares = ctx.sum(distance * distance, axes, false);
  const Term inv_std = (squares / count + ctx.attrs().f("epsilon")).op("rsqrt");
  Term y = distance * channels(inv_std);
  if (ctx.has(1)) y = y * channels(as(ctx.x(1), x.dtype()));
  if (ctx.has(2)) y = y + channels(as(ctx.x(2), x.dtype()));
  std::vector<Term> all = {y, mean.op("identity"), inv_std};
  const bool empty = x.type().static_shape() && element_count(to_shape(x.shape())) == 0;
  const double momentum = empty ? 0 : ctx.attrs().f("momentum");
  const Term variance = squares / (ctx.attrs().b("unbiased") ? count - 1.0 : count);
  for (size_t i = 3; i < ctx.output_count(); ++i) {
    const Term& statistic = i == 3 ? mean : variance;
    all.push_back(ctx.has(i) ? as(ctx.x(i), x.dtype()) * (1 - momentum) + statistic * momentum
                             : statistic.op("identity"));
  }
  through_formula(ctx, all);
}

GRADIENT(batch_norm_training_gradient) {
  const Term dy = ctx.x(0), x = ctx.x(1);
  const int64_t axis = channel_axis(ctx, x), rank = x.rank();
  const Ints axes = axes_without(axis, rank);
  const auto channels = [&](const Term& value) { return ctx.per_channel(value, axis, rank); };
  const Term inv_std = as(ctx.x(3), x.dtype());
  const Term z = (x - channels(as(ctx.x(2), x.dtype()))) * channels(inv_std);
  const Term dgamma = ctx.sum(dy * z, axes, false), dbeta = ctx.sum(dy, axes, false);
  const Term scale = ctx.has(4) ? inv_std * as(ctx.x(4), x.dtype()) : inv_std;
  Term dx = dy;
  if (ctx.attrs().b("training"))
    dx = dy - (channels(dbeta) + z * channels(dgamma)) / ctx.ratio(x, dbeta);
  through_formula(ctx, {dx * channels(scale), dgamma, dbeta});
}

GRADIENT(layer_norm_gradient) { row_norm_gradient(ctx, true); }
GRADIENT(rms_norm_gradient) { row_norm_gradient(ctx, false); }

GRADIENT(group_norm_gradient) {
  const Term dy = ctx.x(0), x = ctx.x(1);
  if (!x.type().static_shape()) ctx.refuse("the shape of x is not known");
  const Shape shape = to_shape(x.shape());
  const int64_t groups = ctx.attrs().i("groups"), rows = shape[0] * groups;
  const int64_t rest = rows == 0 ? 0 : element_count(shape) / rows;
  const auto grouped = [&](const Term& value) {
    return ctx.reshape(value, {shape[0], groups, rest});
  };
  const Term gx = grouped(x);
  const auto statistic = [&](size_t i) {
    return ctx.reshape(as(ctx.x(i), x.dtype()), {shape[0], groups, 1});
  };
  const Term distance = gx - (ctx.has(2) ? statistic(2) : ctx.mean(gx, {2}));
  const Term inv_std =
      ctx.has(3) ? statistic(3)
                 : (ctx.mean(distance * distance, {2}) + ctx.attrs().f("epsilon")).op("rsqrt");
  const Term z = distance * inv_std;
  const Ints axes = axes_without(1, x.rank());
  const Term dz = ctx.has(4) ? dy * ctx.per_channel(as(ctx.x(4), x.dtype()), 1, x.rank()) : dy;
  through_formula(ctx,
                  {ctx.reshape_like(row_back(ctx, grouped(dz), z, inv_std, {2}, true), x),
                   ctx.sum(dy * ctx.reshape_like(z, x), axes, false), ctx.sum(dy, axes, false)});
}

}  // namespace anymps
