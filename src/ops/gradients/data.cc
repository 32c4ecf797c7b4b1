// SPDX-License-Identifier: Apache-2.0
// Gradients of the ops over data: bits have none, moves go back the way they came, windows are
// added to their image again.
#include "ops/gradients/conjugate.h"
#include "ops/gradients/moves.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;

// The inputs and attributes of a range, as slice, slice_update and slice_gradient share them.
NamedAttrs range_attrs(GradientContext& ctx) {
  NamedAttrs attrs;
  for (const char* name : {"starts", "ends", "axes", "steps"})
    attrs.emplace_back(name, ctx.attrs().ints(name));
  return attrs;
}
std::vector<Term> with_range(GradientContext& ctx, std::vector<Term> inputs) {
  for (size_t i = 2; i < 6; ++i) inputs.push_back(ctx.has(i) ? ctx.x(i) : Term());
  return inputs;
}

NamedAttrs column_attrs(GradientContext& ctx) {
  NamedAttrs attrs;
  for (const char* name : {"strides", "dilations", "pads"})
    attrs.emplace_back(name, ctx.attrs().ints(name));
  attrs.emplace_back("auto_pad", ctx.attrs().s("auto_pad"));
  return attrs;
}

}  // namespace

ZERO_GRADIENT(bitwise_and, "works on integers");
ZERO_GRADIENT(bitwise_or, "works on integers");
ZERO_GRADIENT(bitwise_xor, "works on integers");
ZERO_GRADIENT(bitwise_not, "works on integers");
ZERO_GRADIENT(left_shift, "works on integers");
ZERO_GRADIENT(right_shift, "works on integers");
ZERO_GRADIENT(population_count, "works on integers");
ZERO_GRADIENT(hamming_distance, "works on integers");
ZERO_GRADIENT(signbit, "gives bool");
ZERO_GRADIENT(nonzero, "gives places");
ZERO_GRADIENT(eye_like, "reads a shape alone");
ZERO_GRADIENT(coordinate_along_axis, "reads a shape alone");
ZERO_GRADIENT(reinterpret, "the bits of a number are no function that has one");
NO_GRADIENT(stencil_gradient, "stencils have no second gradient");

GRADIENT(stencil) {
  const std::vector<Term> both =
      ctx.add_all("stencil_gradient", {ctx.dy(), ctx.x(0), ctx.x(1)}, ctx.attrs().named(), 2);
  ctx.set(0, both[0]);
  ctx.set(1, both[1]);
}

COMPLEX_GRADIENT(div_no_nan) {
  const Term each = ctx.add("div_no_nan", {ctx.dy(), conjugated(ctx.x(1))});
  ctx.set(0, each);
  if (ctx.wants(1)) ctx.set(1, -each * conjugated(ctx.y()));
}

COMPLEX_GRADIENT(compress) { ctx.set(0, move_back(ctx)); }

COMPLEX_GRADIENT(band_part) {
  std::vector<Term> inputs{ctx.dy()};
  for (size_t i = 1; i < 3; ++i) inputs.push_back(ctx.has(i) ? ctx.x(i) : Term());
  ctx.set(0, ctx.add("band_part", inputs, ctx.attrs().named()));
}

COMPLEX_GRADIENT(reverse_sequence) {
  ctx.set(0, ctx.add("reverse_sequence", {ctx.dy(), ctx.x(1)}, ctx.attrs().named()));
}

COMPLEX_GRADIENT(space_to_batch) { ctx.set(0, ctx.dy().op("batch_to_space", ctx.attrs().named())); }
COMPLEX_GRADIENT(batch_to_space) { ctx.set(0, ctx.dy().op("space_to_batch", ctx.attrs().named())); }

COMPLEX_GRADIENT(interleave) {
  const int64_t axis = axis_of(ctx);
  const auto count = static_cast<int64_t>(ctx.input_count());
  Extents shape;
  for (int64_t i = 0; i < ctx.x().rank(); ++i) {
    shape.push_back(ctx.extent(ctx.x(), i));
    if (i == axis) shape.push_back(count);
  }
  const auto parts =
      ctx.add_all("split", {ctx.reshape(ctx.dy(), shape)}, {{"axis", axis + 1}}, ctx.input_count());
  for (size_t i = 0; i < parts.size(); ++i)
    ctx.set(i, parts[i].op("squeeze", {{"axes", Ints{axis + 1}}}));
}

COMPLEX_GRADIENT(slice_update) {
  const Term dy = ctx.dy();
  ctx.set(0, ctx.add("slice_update", with_range(ctx, {dy, ctx.fill_like(ctx.x(1), 0)}),
                     range_attrs(ctx)));
  std::vector<Term> range{dy};
  for (const Term& term : with_range(ctx, {})) range.push_back(term);
  ctx.set(1, ctx.add("slice", range, range_attrs(ctx)));
}

COMPLEX_GRADIENT(slice_gradient) {
  std::vector<Term> range{ctx.dy()};
  for (const Term& term : with_range(ctx, {})) range.push_back(term);
  ctx.set(0, ctx.add("slice", range, range_attrs(ctx)));
}

COMPLEX_GRADIENT(tile_gradient) {
  std::vector<Term> inputs{ctx.dy()};
  if (ctx.has(1)) inputs.push_back(ctx.x(1));
  ctx.set(0, ctx.add("tile", inputs, {{"repeats", ctx.attrs().ints("repeats")}}));
}

COMPLEX_GRADIENT(pad_gradient) {
  ctx.set(
      0, ctx.dy().op("pad", {{"pads", ctx.attrs().ints("pads")}, {"mode", ctx.attrs().s("mode")}}));
}

COMPLEX_GRADIENT(im2col) {
  const Dims& shape = ctx.x().shape();
  Ints image;
  for (size_t i = 2; i < shape.size(); ++i) {
    if (!shape[i].known()) ctx.refuse("the extents of its image are not known");
    image.push_back(shape[i].value());
  }
  NamedAttrs attrs = column_attrs(ctx);
  attrs.emplace_back("kernel", ctx.attrs().ints("kernel"));
  attrs.emplace_back("image", image);
  ctx.set(0, ctx.dy().op("col2im", attrs));
}

COMPLEX_GRADIENT(col2im) {
  const auto kernel = ctx.ints(2, "kernel");
  if (!kernel) ctx.refuse("its kernel is not known");
  NamedAttrs attrs = column_attrs(ctx);
  attrs.emplace_back("kernel", *kernel);
  ctx.set(0, ctx.dy().op("im2col", attrs));
}

GRADIENT(softmax_cross_entropy) {
  const std::string& reduction = ctx.attrs().s("reduction");
  const int64_t axis = axis_of(ctx);
  const Term x = ctx.x(), labels = ctx.x(1), dy = ctx.dy();
  ctx.set(0, ctx.add("softmax_cross_entropy_gradient", {dy, x, labels},
                     {{"axis", axis}, {"reduction", reduction}}));
  const Term parts = x.op("log_softmax", {{"axis", axis}});
  Term scale = dy;
  if (reduction == "mean") {
    const Term places = ctx.sum(x, {axis});
    scale = dy / ctx.ratio(places, dy);
  }
  ctx.set(1, -parts * scale);
}

GRADIENT(softmax_cross_entropy_gradient) {
  const Term dloss = ctx.x(), x = ctx.x(1), labels = ctx.x(2);
  const int64_t given = ctx.attrs().i("axis"), axis = given < 0 ? given + x.rank() : given;
  Term scale = dloss;
  if (ctx.attrs().s("reduction") == "mean") scale = dloss / ctx.ratio(ctx.sum(x, {axis}), dloss);
  const Term s = x.op("softmax", {{"axis", axis}});
  ctx.through({scale * (s * ctx.sum(labels, {axis}) - labels)});
}

// Each distinct element or slice was taken from where it comes first.
COMPLEX_GRADIENT(unique) {
  if (!ctx.dy()) return;
  const Ints& axes = ctx.attrs().ints("axes");
  const Term x = ctx.x(), zeros = ctx.fill_like(x, 0), places = ctx.y(1);
  if (!axes.empty())
    return ctx.set(0, ctx.add("scatter", {ctx.dy(), places, zeros}, {{"axis", axes[0]}}));
  const Term flat = ctx.add("scatter", {ctx.dy(), places, ctx.reshape(zeros, {-1})});
  ctx.set(0, ctx.reshape_like(flat, x));
}

COMPLEX_GRADIENT(sparse_to_dense) {
  const std::string& storage = ctx.attrs().s("storage");
  const auto wide = [](const Term& list) { return list.op("cast", {{"dtype", DType::kI64}}); };
  Term index0 = wide(ctx.x(1)), index1 = wide(ctx.x(2));
  if (storage !=
      "coo") {  // the line of value k: how many lines after the first start at k or before
    const Term places = ctx.add(
        "range", {ctx.scalar(0, DType::kI64), index0.op("size"), ctx.scalar(1, DType::kI64)});
    const Term starts =
        index1.op("slice", {{"starts", Ints{1}}, {"ends", Ints{INT64_MAX}}, {"axes", Ints{0}}});
    const Term passed = places.op("unsqueeze", {{"axes", Ints{1}}}) >= starts;
    index1 = ctx.sum(wide(passed), {1}, false);
  }
  const bool rows_first = storage == "csc";
  const Term pairs = ctx.add("stack", {rows_first ? index0 : index1, rows_first ? index1 : index0},
                             {{"axis", -1}});
  ctx.set(0, ctx.add("gather_nd", {ctx.dy(), pairs}));
}

GRADIENT(sgd) {
  const Term dy = ctx.dy();
  ctx.set(0, dy);
  ctx.set(1, -dy * ctx.x(2));
  ctx.set(2, -dy * ctx.x(1));
}

GRADIENT(adam) {
  const auto number = [&](size_t i) { return ctx.x(i).op("reshape", {{"shape", Ints{}}}); };
  const Term g = ctx.x(1), beta1 = number(5), beta2 = number(6);
  const Term momentum = ctx.x(2) * beta1 + g * (1 - beta1);
  const Term velocity = ctx.x(3) * beta2 + g * g * (1 - beta2);
  const Term highest = ctx.has(8) ? ctx.add("max", {ctx.x(8), velocity}) : velocity;
  Term rate = number(4);
  if (ctx.has(9)) rate = rate * (1 - number(10)).op("sqrt") / (1 - number(9));
  const Term values = ctx.x(0) - momentum * rate / (highest.op("sqrt") + number(7));
  // A velocity that is its own maximum is two outputs.
  ctx.through({values, momentum, velocity, ctx.has(8) ? highest : highest.op("identity")});
}

}  // namespace anymps
