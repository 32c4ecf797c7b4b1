// SPDX-License-Identifier: Apache-2.0
// Gradients of quantized numbers. Steps have no slope, but what stands beside them does: scales,
// zero points that are floats, and tables.
#include "semantics/quantization_rules.h"
#include "ops/gradient_parts.h"

namespace anymps {

namespace {

// Sums of what elements of x's shape give to the scale, or zero point, that is theirs.
Term group_sums(GradientContext& ctx, Term value, const Term& scale) {
  const Term x = ctx.x(0);
  const int64_t rank = x.rank(), axis = ctx.attrs().i("axis");
  const auto total = [&] {
    return ctx.reshape_like(ctx.sum(value, axes_from(0, rank), false), scale);
  };
  if (scale.rank() == 0) return total();
  if (!x.type().static_shape() || !scale.type().static_shape()) {
    if (scale.rank() != 1 || rank == 1) ctx.refuse("blocks of extents that are not known");
    return ctx.sum(value, axes_without(axis < 0 ? axis + rank : axis, rank), false);
  }
  const Shape from = to_shape(x.shape()), to = to_shape(scale.shape());
  if (element_count(to) == 1) return total();
  if (to.size() == 1 && rank != 1)
    return ctx.sum(value, axes_without(axis < 0 ? axis + rank : axis, rank), false);
  const Shape blocks = quant_groups(ctx.op().name.c_str(), from, to, contiguous_strides(to), axis,
                                    ctx.attrs().i("block_size"))
                           .blocks;
  Ints pads(from.size() * 2, 0), split, within;
  for (size_t i = 0; i < from.size(); ++i) {
    pads[from.size() + i] = to[i] * blocks[i] - from[i];  // the last block may be shorter
    split.push_back(to[i]);
    split.push_back(blocks[i]);
    within.push_back(static_cast<int64_t>(2 * i + 1));
  }
  const Term whole = value.op("pad", {{"pads", pads}});
  return ctx.sum(whole.op("reshape", {{"shape", split}, {"allow_zero", true}}), within, false);
}

Term cast_to(const Term& value, DType dtype) {
  return value.dtype() == dtype ? value : value.op("cast", {{"dtype", dtype}});
}

}  // namespace

ZERO_GRADIENT(conv_integer, "gives integers");
ZERO_GRADIENT(matmul_integer, "gives integers");
ZERO_GRADIENT(quantize, "gives integers");
NO_GRADIENT(quantized_conv, "it is made by passes, for integers");
NO_GRADIENT(quantized_matmul, "it is made by passes, for integers");
ZERO_GRADIENT(requantize, "gives integers");

// y = (x - zero_point) * scale; the gradient is computed as the wider of y and the scale.
GRADIENT(dequantize) {
  const auto computed = [&](const Term& term) {
    const bool wide = ctx.y().dtype() == DType::kF64 || term.dtype() == DType::kF64;
    return wide ? DType::kF64 : DType::kF32;
  };
  if (ctx.wants(1)) {
    const Term scale = ctx.x(1);
    const DType dtype = computed(scale);
    NamedAttrs attrs = {{"axis", ctx.attrs().i("axis")},
                        {"block_size", ctx.attrs().i("block_size")},
                        {"zero_point", ctx.attrs().f("zero_point")},
                        {"dtype", dtype}};
    const Term steps = ctx.add(
        "dequantize", {ctx.x(0), ctx.fill_like(scale, 1), ctx.has(2) ? ctx.x(2) : Term()}, attrs);
    ctx.set(1, cast_to(group_sums(ctx, cast_to(ctx.dy(), dtype) * steps, scale), scale.dtype()));
  }
  if (ctx.wants(2)) {
    const Term zero = ctx.x(2);
    const DType dtype = computed(zero);
    const Term sums = group_sums(ctx, cast_to(ctx.dy(), dtype), zero);
    if (!ctx.has(1)) return ctx.set(2, cast_to(sums * -ctx.attrs().f("scale"), zero.dtype()));
    const Term scale = ctx.x(1);
    if (!(scale.shape() == zero.shape()))
      ctx.refuse("a zero point {} that has not the shape of the scale {}", to_string(zero.shape()),
                 to_string(scale.shape()));
    ctx.set(2, cast_to(-sums * cast_to(scale, dtype), zero.dtype()));
  }
}

// A table of its own places, looked up the same way, tells where each element of y came from.
GRADIENT(dequantize_lut) {
  const Term table = ctx.x(1), dy = ctx.dy();
  if (dy.type().static_shape() && element_count(to_shape(dy.shape())) == 0) return;
  const Term numbers = ctx.add(
      "range", {ctx.scalar(0, DType::kF64), table.op("size").op("cast", {{"dtype", DType::kF64}}),
                ctx.scalar(1, DType::kF64)});
  const Term places =
      ctx.add("dequantize_lut", {ctx.x(0), ctx.reshape_like(numbers, table)}, ctx.attrs().named())
          .op("cast", {{"dtype", DType::kI64}});
  const Term sums = ctx.add("scatter",
                            {ctx.reshape(dy, {-1}), ctx.reshape(places, {-1}),
                             ctx.reshape(ctx.fill_like(table, 0), {-1})},
                            {{"axis", 0}, {"mode", "add"}});
  ctx.set(1, ctx.reshape_like(sums, table));
}

// Only the scale is not an integer. It follows the largest and the smallest number.
GRADIENT(dynamic_quantize) {
  if (!ctx.dy(1)) return;
  const Term x = ctx.x(), zero = ctx.scalar(0, x.dtype());
  if (x.type().static_shape() && element_count(to_shape(x.shape())) == 0) return;
  const auto reduced = [&](const char* op) {
    return x.op(op, {{"axes", axes_from(0, x.rank())}, {"keep_dims", false}});
  };
  const Term range =
      ctx.add("max", {reduced("reduce_max"), zero}) - ctx.add("min", {reduced("reduce_min"), zero});
  ctx.through({Term(), range / 255});
}

}  // namespace anymps
