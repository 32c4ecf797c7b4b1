// SPDX-License-Identifier: Apache-2.0
// Weighted reductions over windows of the last axes.
#include "ops/signal/stencil.h"

#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

namespace {

std::vector<int64_t> list_of(const Attrs& attrs, const char* name, size_t length, int64_t fill) {
  std::vector<int64_t> list = attrs.ints(name);
  if (list.empty()) list.assign(length, fill);
  require(list.size() == length, "[stencil] {} has {} entries, must have {}", name, list.size(),
          length);
  return list;
}

}  // namespace

Stencil stencil_of(const Attrs& attrs, const Shape& in, const Shape& window) {
  using Padding = StencilRule::Padding;
  const size_t rank = window.size();
  const std::string& padding = attrs.s("padding");
  return place_stencil({.padding = padding == "valid"        ? Padding::kValid
                                   : padding == "same_upper" ? Padding::kSameUpper
                                   : padding == "same_lower" ? Padding::kSameLower
                                   : padding == "offset"     ? Padding::kOffset
                                                             : Padding::kExplicit,
                        .strides = list_of(attrs, "strides", rank, 1),
                        .dilations = list_of(attrs, "dilations", rank, 1),
                        .pads = list_of(attrs, "pads", 2 * rank, 0),
                        .offsets = list_of(attrs, "offsets", rank, 0)},
                       in, window);
}

void check_border(const InferContext& ctx, const Dims& in) {
  if (ctx.attrs.s("border") == "constant") return;
  for (const Dim& extent : in)
    ctx.check(!extent.is(0), "an empty axis has no border of mode {}", ctx.attrs.s("border"));
}

OpWriter& stencil_attrs(OpWriter& op) {
  return op.attr("strides", kNoInts, "one an axis; none: 1")
      .attr("dilations", kNoInts, "one an axis; none: 1")
      .attr("padding", "explicit", {"explicit", "valid", "same_upper", "same_lower", "offset"},
            "where the first window begins and how many there are; offset: as many as same")
      .attr("pads", kNoInts, "of padding explicit: the begins of all axes, then the ends")
      .attr("offsets", kNoInts, "of padding offset: where the first window begins")
      .attr("border", "constant", {"constant", "reflect", "edge", "wrap", "symmetric", "anti_wrap"})
      .attr("value", 0.0, "of a constant border");
}

OP(stencil)
    .doc(
        "A reduction of x times weights over a window of the last axes, one for each of the "
        "weights' axes. What is outside x comes from the border, whose modes are those of pad. An "
        "argument is the place in the window in row-major order.")
    .formula("y[i] = reduce over j of x[i * stride + j * dilation + first] * weights[j]")
    .mps("stencilWithSourceTensor:weightsTensor:descriptor:name:")
    .input("x", kFloat)
    .input("weights", kFloat)
    .output("y")
    .attr("reduce", "sum", {"sum", "product", "min", "max", "arg_min", "arg_max"})
    .with(stencil_attrs)
    .infer([](InferContext& ctx) {
      expect_rank(ctx, 1, 1, ctx.rank(0));
      Dims shape = ctx.shape(0);
      const size_t lead = shape.size() - ctx.shape(1).size();
      const Dims in(shape.begin() + static_cast<ptrdiff_t>(lead), shape.end());
      const bool known = all_known(in) && all_known(ctx.shape(1));
      const Shape out =
          known ? stencil_of(ctx.attrs, to_shape(in), to_shape(ctx.shape(1))).out : Shape{};
      for (size_t i = 0; i < in.size(); ++i)
        shape[lead + i] = known ? Dim(out[i]) : ctx.fresh(std::to_string(i));
      const std::string& reduce = ctx.attrs.s("reduce");
      const bool place = reduce == "arg_min" || reduce == "arg_max";
      ctx.set(0, place ? std::optional(DType::kI64) : std::nullopt, std::move(shape));
      check_border(ctx, in);
    })
    .sample({"valid", {{5, 6}, {2, 3}}, {}})
    .sample({"same", {{2, 5, 6}, {3, 2}}, {{"padding", "same_upper"}}})
    .sample({"image",
             {{1, 2, 5, 6}, {1, 1, 3, 3}},
             {{"pads", Ints{0, 0, 1, 1, 0, 0, 1, 1}}, {"border", "edge"}}})
    .sample({"max",
             {{7}, {3}},
             {{"reduce", "max"}, {"padding", "same_lower"}, {"border", "reflect"}}})
    .sample({"min", {{7}, {3}}, {{"reduce", "min"}, {"strides", Ints{2}}}})
    .sample({"product",
             {{8}, {2}},
             {{"reduce", "product"},
              {"dilations", Ints{3}},
              {"padding", "offset"},
              {"offsets", Ints{-1}},
              {"border", "wrap"}}})
    .sample({"arg_max", {{6}, {3}}, {{"reduce", "arg_max"}}})
    .sample({"arg_min",
             {{6}, {3}},
             {{"reduce", "arg_min"}, {"padding", "same_upper"}, {"border", "anti_wrap"}}})
    .sample({"empty", {{0, 6}, {3}}, {}});

GRADIENT(stencil) {
  const std::vector<Term> both =
      ctx.add_all("stencil_gradient", {ctx.dy(), ctx.x(0), ctx.x(1)}, ctx.attrs().named(), 2);
  ctx.set(0, both[0]);
  ctx.set(1, both[1]);
}

}  // namespace anymps
