// SPDX-License-Identifier: Apache-2.0
// Gradients of ops that repeat elements: each element of x gets the sum of the gradients of its
// copies.
#include "ops/gradient.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

void infer_tile_gradient(InferContext& ctx) {
  const std::optional<Dims> repeats = ctx.ints(1, "repeats");
  Dims shape = ctx.shape(0);
  if (!repeats) {
    for (size_t i = 0; i < shape.size(); ++i) shape[i] = ctx.fresh(std::to_string(i));
    return ctx.set(0, std::move(shape));
  }
  ctx.check(repeats->size() == shape.size(), "{} repeats for a gradient of rank {}",
            repeats->size(), shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    const Dim& count = (*repeats)[i];
    ctx.check(!count.known() || count.value() > 0, "repeats {} must be positive",
              to_string(*repeats));
    const Quotient part = quotient({shape[i]}, {count}, "tile_gradient");
    ctx.check(part.exact || !shape[i].known() || !count.known(),
              "extent {} of axis {} is not {} times another", shape[i].str(), i, count.str());
    shape[i] = part.value;
  }
  ctx.set(0, std::move(shape));
}

void infer_pad_gradient(InferContext& ctx) {
  Dims shape = ctx.shape(0);
  const size_t rank = shape.size();
  const std::vector<int64_t>& pads = ctx.attrs.ints("pads");
  ctx.check(pads.size() == 2 * rank, "{} pads for a gradient of rank {}: {} are needed",
            pads.size(), rank, 2 * rank);
  for (size_t i = 0; i < rank; ++i) {
    const bool known = shape[i].known();
    shape[i] = shape[i] - pads[i] - pads[rank + i];
    ctx.check(!known || shape[i].value() >= 0, "pads {} and {} are more than axis {} has", pads[i],
              pads[rank + i], i);
    ctx.check(!known || shape[i].value() > 0 || ctx.attrs.s("mode") == "constant" ||
                  (pads[i] <= 0 && pads[rank + i] <= 0),
              "mode {} cannot pad the empty axis {}", ctx.attrs.s("mode"), i);
  }
  ctx.set(0, std::move(shape));
}

}  // namespace

OP(tile_gradient)
    .doc("The gradient of tile.")
    .formula("dx[i] = sum over k of dy[i + k * n] along each axis")
    .mps("tileGradientWithIncomingGradientTensor:sourceTensor:withMultiplier:name:")
    .input("dy", kNumber)
    .ints("repeats", "how many times, for each axis")
    .output("dx")
    .infer(infer_tile_gradient)
    .sample({"matrix", {{4, 6}}, {{"repeats", Ints{2, 3}}}})
    .sample({"input", {{3, 3, 4}, {3}}, {}, {{1, {3, 1, 2}}}})
    .sample({"scalar", {{}}, {}})
    .sample({"empty", {{0, 4}}, {{"repeats", Ints{3, 2}}}});

OP(pad_gradient)
    .doc("The gradient of pad with respect to x.")
    .formula("dx[j] = sum of dy[i] over all i whose element pad takes from j")
    .mps(
        "padGradientWithIncomingGradientTensor:sourceTensor:paddingMode:leftPadding:rightPadding:"
        "name:")
    .input("dy", kNumber)
    .output("dx")
    .required("pads", AttrKind::kInts, "the begins of all axes, then the ends, as pad has them")
    .attr("mode", "constant", {"constant", "reflect", "edge", "wrap", "symmetric", "anti_wrap"})
    .infer(infer_pad_gradient)
    .sample({"constant", {{5, 4}}, {{"pads", Ints{1, 0, 2, 1}}}})
    .sample({"crop", {{4, 5}}, {{"pads", Ints{-1, 2, 1, -2}}}})
    .sample({"reflect", {{6, 7}}, {{"pads", Ints{2, 3, 1, 0}}, {"mode", "reflect"}}})
    .sample({"edge", {{4, 11}}, {{"pads", Ints{1, 5, 0, 2}}, {"mode", "edge"}}})
    .sample({"wrap", {{7, 8}}, {{"pads", Ints{4, 1, 0, 5}}, {"mode", "wrap"}}})
    .sample({"anti_wrap", {{8}}, {{"pads", Ints{3, 2}}, {"mode", "anti_wrap"}}})
    .sample({"symmetric", {{7, 9}}, {{"pads", Ints{3, 1, 1, 4}}, {"mode", "symmetric"}}})
    .sample({"empty", {{2, 2}}, {{"pads", Ints{1, 0, 1, 0}}}});

COMPLEX_GRADIENT(tile_gradient) {
  std::vector<Term> inputs{ctx.dy()};
  if (ctx.has(1)) inputs.push_back(ctx.x(1));
  ctx.set(0, ctx.add("tile", inputs, {{"repeats", ctx.attrs().ints("repeats")}}));
}

COMPLEX_GRADIENT(pad_gradient) {
  ctx.set(
      0, ctx.dy().op("pad", {{"pads", ctx.attrs().ints("pads")}, {"mode", ctx.attrs().s("mode")}}));
}

}  // namespace anymps
