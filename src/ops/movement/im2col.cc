// SPDX-License-Identifier: Apache-2.0
// Sliding windows laid out as columns, and columns added back to an image.
#include "ops/expect.h"
#include "ops/gradient.h"
#include "ops/layers/window.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

void infer_im2col(InferContext& ctx) {
  expect_rank(ctx, 0, 3, 8);
  const Dims& x = ctx.shape(0);
  const std::vector<int64_t>& kernel = ctx.attrs.ints("kernel");
  ctx.check(kernel.size() + 2 == x.size(), "kernel has {} extents, x has {} spatial axes",
            kernel.size(), x.size() - 2);
  const Dims sizes(kernel.begin(), kernel.end());
  const Dims windows = window_outputs(ctx.attrs, Dims(x.begin() + 2, x.end()), sizes);
  Dims rows = sizes;
  rows.insert(rows.begin(), x[1]);
  ctx.set(0, {x[0], ordered_product(rows), ordered_product(windows)});
}

void infer_col2im(InferContext& ctx) {
  expect_rank(ctx, 0, 3, 3);
  const Dims& x = ctx.shape(0);
  const std::optional<Dims> image = ctx.ints(1, "image"), kernel = ctx.ints(2, "kernel");
  if (!image || !kernel) {
    const ValueType* list = ctx.has(1) ? &ctx.type(1) : nullptr;
    const bool counted = list && list->ranked && list->shape.size() == 1 && list->shape[0].known();
    if (!image && !(counted && list->shape[0].value() <= ValueType::kMaxContent))
      return ctx.set_unranked(0);
    const size_t axes = image ? image->size() : static_cast<size_t>(list->shape[0].value());
    Dims shape{x[0], ctx.fresh("c")};
    for (size_t i = 0; i < axes; ++i)
      shape.push_back(image ? (*image)[i] : ctx.fresh(std::to_string(i)));
    return ctx.set(0, std::move(shape));
  }
  ctx.check(image->size() == kernel->size() && !image->empty(),
            "the image has {} axes, the kernel {}", image->size(), kernel->size());
  for (const Dim& extent : *image)
    ctx.check(!extent.known() || extent.value() >= 0, "image {} has a negative extent",
              to_string(*image));
  const Dims windows = window_outputs(ctx.attrs, *image, *kernel);
  const Dim columns = ordered_product(windows);
  ctx.check(may_equal(columns, x[2]), "x has {} columns, the image has {} windows", x[2].str(),
            columns.str());
  const Quotient channels = quotient({x[1]}, *kernel, "col2im");
  ctx.check(channels.exact || !x[1].known() || !all_known(*kernel),
            "{} rows do not divide by the kernel {}", x[1].str(), to_string(*kernel));
  Dims shape{x[0], channels.value};
  shape.insert(shape.end(), image->begin(), image->end());
  ctx.set(0, std::move(shape));
}

OpWriter& column_window(OpWriter& op) {
  return op.attr("strides", kNoInts, "one an axis; none: 1")
      .attr("dilations", kNoInts, "one an axis; none: 1")
      .attr("pads", kNoInts, "the begins of all axes, then the ends")
      .attr("auto_pad", "explicit", auto_pad_choices());
}

}  // namespace

OP(im2col)
    .doc(
        "Each window of an image as a column: [N, C, spatial..] becomes [N, C * "
        "window, number of windows]. What is outside the image is 0.")
    .formula("y[n, (c, k..), (o..)] = x[n, c, o * stride + k * dilation - pad..]")
    .mps("imToColWithSourceTensor:descriptor:name:")
    .input("x", kAny)
    .output("y")
    .required("kernel", AttrKind::kInts, "extents of the window")
    .with(column_window)
    .facts(kMoves)
    .infer(infer_im2col)
    .sample({"image", {{2, 3, 5, 6}}, {{"kernel", Ints{2, 3}}}})
    .sample({"strided",
             {{1, 2, 6, 7}},
             {{"kernel", Ints{3, 2}},
              {"strides", Ints{2, 1}},
              {"dilations", Ints{1, 2}},
              {"pads", Ints{1, 0, 2, 1}}}})
    .sample({"signal", {{2, 1, 9}}, {{"kernel", Ints{3}}, {"auto_pad", "same_upper"}}})
    .sample({"volume", {{1, 2, 3, 3, 3}}, {{"kernel", Ints{2, 2, 2}}}})
    .sample({"empty", {{0, 2, 4, 4}}, {{"kernel", Ints{2, 2}}}});

OP(col2im)
    .doc(
        "The image whose windows are the columns of x; where windows lie over each "
        "other they are added.")
    .formula("y[n, c, o * stride + k * dilation - pad..] += x[n, (c, k..), (o..)]")
    .mps("colToImWithSourceTensor:outputShape:descriptor:name:")
    .input("x", kNumber)
    .ints("image", "spatial extents of y", "I", "spatial extents; wins over the attribute")
    .ints("kernel", "extents of the window", "K", "extents of the window; wins over the attribute")
    .output("y")
    .with(column_window)
    .infer(infer_col2im)
    .sample({"image", {{2, 12, 12}}, {{"image", Ints{4, 5}}, {"kernel", Ints{2, 2}}}})
    .sample({"strided",
             {{1, 12, 12}},
             {{"image", Ints{6, 4}},
              {"kernel", Ints{3, 2}},
              {"strides", Ints{2, 1}},
              {"dilations", Ints{1, 2}},
              {"pads", Ints{1, 0, 0, 2}}}})
    .sample({"inputs", {{1, 8, 4}, {2}, {2}}, {}, {{1, {3, 3}}, {2, {2, 2}}}})
    .sample({"volume", {{1, 8, 8}}, {{"image", Ints{3, 3, 3}}, {"kernel", Ints{2, 2, 2}}}})
    .sample({"empty", {{0, 4, 4}}, {{"image", Ints{3, 3}}, {"kernel", Ints{2, 2}}}});

namespace {

NamedAttrs column_attrs(GradientContext& ctx) {
  NamedAttrs attrs;
  for (const char* name : {"strides", "dilations", "pads"})
    attrs.emplace_back(name, ctx.attrs().ints(name));
  attrs.emplace_back("auto_pad", ctx.attrs().s("auto_pad"));
  return attrs;
}

}  // namespace

COMPLEX_GRADIENT(im2col) {
  const Dims& shape = ctx.x().shape();
  std::vector<int64_t> image;
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

}  // namespace anymps
