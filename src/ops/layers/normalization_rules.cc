// SPDX-License-Identifier: Apache-2.0
// Gradients of normalizations. Those by the input's own statistics share one formula: with
// z = (x - mean) * inv_std,  dx = inv_std * (dz - mean(dz) - z * mean(dz * z)).
#include "ops/gradient_parts.h"

namespace anymps {

namespace {

struct Normalized {
  Term z, inv_std;
};

Normalized normalized(GradientContext& ctx, const Term& x, const Ints& axes) {
  const Term centered = x - ctx.mean(x, axes);
  const Term inv_std = (ctx.mean(centered * centered, axes) + ctx.attrs().f("epsilon")).op("rsqrt");
  return {centered * inv_std, inv_std};
}

Term back(GradientContext& ctx, const Normalized& n, const Term& dz, const Ints& axes) {
  return n.inv_std * (dz - ctx.mean(dz, axes) - n.z * ctx.mean(dz * n.z, axes));
}

// Scale and shift of each channel (axis 1) behind a normalized tensor of x's shape.
void per_channel_gradients(GradientContext& ctx, const Term& z) {
  const Ints axes = axes_without(1, ctx.x().rank());
  if (ctx.wants(1)) ctx.set(1, ctx.sum(ctx.dy() * z, axes, false));
  if (ctx.wants(2)) ctx.set(2, ctx.sum(ctx.dy(), axes, false));
}

Term scaled_by_channel(GradientContext& ctx) {
  return ctx.has(1) ? ctx.dy() * ctx.per_channel(ctx.x(1), 1, ctx.x().rank()) : ctx.dy();
}

// The attribute `axes`; empty: all of x's.
Ints given_axes(GradientContext& ctx) {
  const Ints& axes = ctx.attrs().ints("axes");
  return axes.empty() ? axes_from(0, ctx.y().rank()) : axes;
}

// Sums over the channels c - before .. c + after.
Term window_sum(const Term& value, int64_t axis, int64_t before, int64_t after) {
  const size_t rank = value.rank();
  Ints pads(2 * rank, 0);
  pads[axis] = before;
  pads[static_cast<int64_t>(rank) + axis] = after;
  const Term padded = value.op("pad", {{"pads", pads}});
  Term sum;
  for (int64_t k = 0; k <= before + after; ++k) {
    const int64_t left = before + after - k;
    const Term part = padded.op(
        "slice",
        {{"starts", Ints{k}}, {"ends", Ints{left == 0 ? INT64_MAX : -left}}, {"axes", Ints{axis}}});
    sum = sum ? sum + part : part;
  }
  return sum;
}

// Scale and shift, where there are any, have the shape of the normalized axes: the case of the
// fused gradients.
bool one_row_of_parameters(GradientContext& ctx) {
  const Dims& x = ctx.x().shape();
  const Dims row(x.begin() + static_cast<std::ptrdiff_t>(axis_of(ctx)), x.end());
  for (size_t i = 1; i < ctx.input_count(); ++i)
    if (ctx.has(i) && !(ctx.x(i).shape() == row)) return false;
  return true;
}

void set_fused(GradientContext& ctx, const std::vector<Term>& gradients) {
  for (size_t i = 0; i < gradients.size(); ++i)
    if (ctx.has(i)) ctx.set(i, gradients[i]);
}

// By one node, from the statistics if they were computed.
void fused_gradient(GradientContext& ctx, const char* op) {
  std::vector<Term> inputs{ctx.dy(), ctx.x(0), {}, {}};
  if (ctx.output_count() > 2) inputs = {ctx.dy(), ctx.x(0), ctx.y(1), ctx.y(2)};
  if (ctx.has(1)) inputs.push_back(ctx.x(1));
  const size_t outputs = ctx.wants(1) || ctx.wants(2) ? 3 : 1;
  set_fused(ctx, ctx.add_all(op, inputs, shared_attrs(ctx, op), outputs));
}

}  // namespace

GRADIENT(batch_norm) {
  const Term x = ctx.x(0), dy = ctx.dy();
  const int64_t axis = axis_of(ctx), rank = x.rank();
  const Ints others = axes_without(axis, rank);
  const Term inv = (ctx.x(2) + ctx.attrs().f("epsilon")).op("rsqrt");
  const Term scale = ctx.has(3) ? inv * ctx.x(3) : inv;
  if (ctx.wants(0)) ctx.set(0, dy * ctx.per_channel(scale, axis, rank));
  const Term dbeta = ctx.sum(dy, others, false);
  if (ctx.wants(1)) ctx.set(1, -dbeta * scale);
  if (ctx.wants(2) || ctx.wants(3)) {
    const Term moment = ctx.sum(dy * (x - ctx.per_channel(ctx.x(1), axis, rank)), others, false);
    if (ctx.wants(2)) ctx.set(2, moment * scale * (inv * inv) * -0.5);
    if (ctx.wants(3)) ctx.set(3, moment * inv);
  }
  ctx.set(4, dbeta);
}

GRADIENT(layer_norm) {
  const Term x = ctx.x(0);
  const Ints axes = axes_from(axis_of(ctx), x.rank());
  if (ctx.dy(1) || ctx.dy(2)) {
    const Term mean = ctx.mean(x, axes);
    const Term variance = ctx.mean((x - mean) * (x - mean), axes);
    const Term inv_std = (variance + ctx.attrs().f("epsilon")).op("rsqrt");
    Term y = (x - mean) * inv_std;
    if (ctx.has(1)) y = y * ctx.x(1);
    if (ctx.has(2)) y = y + ctx.x(2);
    return ctx.through({y, mean, inv_std});
  }
  if (one_row_of_parameters(ctx)) return fused_gradient(ctx, "layer_norm_gradient");
  const Term dy = ctx.dy();
  const Normalized n = normalized(ctx, x, axes);
  if (ctx.wants(0)) ctx.set(0, back(ctx, n, ctx.has(1) ? dy * ctx.x(1) : dy, axes));
  if (ctx.wants(1)) ctx.set(1, dy * n.z);
  ctx.set(2, dy);
}

GRADIENT(rms_norm) {
  const Term x = ctx.x(0), dy = ctx.dy();
  if (!ctx.dy(1) && one_row_of_parameters(ctx)) {
    std::vector<Term> inputs{dy, x, {}};
    if (ctx.output_count() > 1) inputs[2] = ctx.y(1);
    if (ctx.has(1)) inputs.push_back(ctx.x(1));
    return set_fused(
        ctx, ctx.add_all("rms_norm_gradient", inputs, shared_attrs(ctx, "rms_norm_gradient"),
                         ctx.wants(1) ? 2 : 1));
  }
  const Ints axes = axes_from(axis_of(ctx), x.rank());
  const Term inv = (ctx.mean(x * x, axes) + ctx.attrs().f("epsilon")).op("rsqrt"), z = x * inv;
  if (ctx.dy(1)) return ctx.through({ctx.has(1) ? z * ctx.x(1) : z, inv});
  if (ctx.wants(0)) {
    const Term dz = ctx.has(1) ? dy * ctx.x(1) : dy;
    ctx.set(0, inv * (dz - z * ctx.mean(dz * z, axes)));
  }
  if (ctx.wants(1)) ctx.set(1, dy * z);
}

// Channels that are not axis 1 are brought there, and the result back; false: they are.
bool through_second_axis(GradientContext& ctx) {
  const int64_t axis = axis_of(ctx), rank = ctx.x(0).rank();
  if (axis == 1) return false;
  Ints swap;
  for (int64_t i = 0; i < rank; ++i) swap.push_back(i == 1 ? axis : i == axis ? 1 : i);
  const auto swapped = [&](const Term& value) { return value.op("transpose", {{"perm", swap}}); };
  std::vector<Term> inputs{swapped(ctx.x(0))};
  for (size_t i = 1; i < ctx.input_count(); ++i) inputs.push_back(ctx.has(i) ? ctx.x(i) : Term());
  NamedAttrs attrs = shared_attrs(ctx, ctx.op().name.c_str());
  for (NamedAttr& attr : attrs)
    if (attr.name == "axis") attr = NamedAttr("axis", int64_t{1});
  std::vector<Term> outputs = ctx.add_all(ctx.op().name.c_str(), inputs, attrs, ctx.output_count());
  outputs[0] = swapped(outputs[0]);
  ctx.through(outputs);
  return true;
}

GRADIENT(group_norm) {
  if (through_second_axis(ctx)) return;
  const Term x = ctx.x(0);
  if (!ctx.dy(1) && !ctx.dy(2)) return fused_gradient(ctx, "group_norm_gradient");
  const auto grouped = [&](const Term& value) {  // [N, groups, the rest]
    const int64_t groups = ctx.attrs().i("groups");
    if (!value.type().static_shape()) return ctx.reshape(value, {ctx.extent(x, 0), groups, -1});
    const int64_t rows = value.shape()[0].value() * groups;
    const int64_t count = element_count(to_shape(value.shape()));
    return ctx.reshape(value, {ctx.extent(x, 0), groups, rows == 0 ? 0 : count / rows});
  };
  const Term gx = grouped(x), mean = ctx.mean(gx, {2});
  const Term inv_std =
      (ctx.mean((gx - mean) * (gx - mean), {2}) + ctx.attrs().f("epsilon")).op("rsqrt");
  Term y = ctx.reshape_like((gx - mean) * inv_std, x);
  if (ctx.has(1)) y = y * ctx.per_channel(ctx.x(1), 1, x.rank());
  if (ctx.has(2)) y = y + ctx.per_channel(ctx.x(2), 1, x.rank());
  std::vector<Term> outputs{y};
  for (size_t i = 1; i < ctx.output_count(); ++i)
    outputs.push_back((i == 1 ? mean : inv_std).op("squeeze", {{"axes", Ints{2}}}));
  ctx.through(outputs);
}

GRADIENT(instance_norm) {
  if (through_second_axis(ctx)) return;
  const Ints axes = axes_from(2, ctx.x().rank());
  const Normalized n = normalized(ctx, ctx.x(), axes);
  if (ctx.wants(0)) ctx.set(0, back(ctx, n, scaled_by_channel(ctx), axes));
  per_channel_gradients(ctx, n.z);
}

GRADIENT(lrn) {
  const Term x = ctx.x(0), dy = ctx.dy();
  const int64_t size = ctx.attrs().i("size"), before = (size - 1) / 2, after = size - 1 - before,
                axis = axis_of(ctx);
  const double alpha = ctx.attrs().f("alpha") / static_cast<double>(size),
               beta = ctx.attrs().f("beta");
  const Term s = window_sum(x * x, axis, before, after) * alpha + ctx.attrs().f("bias");
  const Term power = ctx.add("pow", {s, ctx.scalar(-beta, x.dtype())});
  ctx.set(
      0, dy * power - x * window_sum(dy * x * power / s, axis, after, before) * (2 * alpha * beta));
}

GRADIENT(variance) {
  const Ints axes = given_axes(ctx);
  const Term distance = ctx.x(0) - (ctx.has(1) ? ctx.x(1) : ctx.mean(ctx.x(0), axes));
  ctx.through({ctx.mean(distance * distance, axes)});
}

GRADIENT(norm_gamma_gradient) {
  const Term inv_std = (ctx.x(3) + ctx.attrs().f("epsilon")).op("rsqrt");
  ctx.through({ctx.sum(ctx.x(0) * (ctx.x(1) - ctx.x(2)) * inv_std, given_axes(ctx))});
}

GRADIENT(norm_beta_gradient) { ctx.set(0, ctx.expand_like(ctx.dy(), ctx.x(0))); }

GRADIENT(norm_gradient) {
  const Ints axes = given_axes(ctx);
  const Term factor = (ctx.x(3) + ctx.attrs().f("epsilon")).op("rsqrt");
  const Term z = (ctx.x(1) - ctx.x(2)) * factor;
  const auto scaled = [&](const Term& value) { return ctx.has(4) ? value * ctx.x(4) : value; };
  const Term dz = scaled(ctx.x(0)), scale = ctx.sum(dz * z, axes), shift = ctx.sum(dz, axes);
  const Term to_scale = ctx.has(5) ? scaled(ctx.x(5)) : scale,
             to_shift = ctx.has(6) ? scaled(ctx.x(6)) : shift;
  ctx.through({factor * (dz - (to_shift + z * to_scale) / ctx.ratio(ctx.x(1), shift))});
}

}  // namespace anymps
