// SPDX-License-Identifier: Apache-2.0
// Einstein's summation.
#include <algorithm>

#include "ops/expect.h"
#include "ops/gradient_parts.h"
#include "semantics/einsum.h"

namespace anymps {

namespace {

void infer_einsum(InferContext& ctx) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < ctx.input_count(); ++i) ranks.push_back(ctx.shape(i).size());
  const Einsum einsum = Einsum::parse(ctx.attrs.s("equation"), ranks);
  Dims extents(einsum.labels, Dim(1));
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t k = 0; k < ranks[i]; ++k) {
      const Dim& extent = ctx.shape(i)[k];
      Dim& known = extents[einsum.inputs[i][k]];
      ctx.check(extent.is(1) || known.is(1) || may_equal(extent, known),
                "'{}' gives axis {} of input {}, of extent {}, a label of extent {}",
                ctx.attrs.s("equation"), k, i, extent.str(), known.str());
      if (known.is(1) || (!known.known() && extent.known() && !extent.is(1))) known = extent;
    }
  Dims y;
  for (const size_t label : einsum.output) y.push_back(extents[label]);
  ctx.set(0, std::move(y));
}

}  // namespace

OP(einsum)
    .doc(
        "Einstein's summation: products of elements, summed over the labels that the output does "
        "not have. An ellipsis stands for any number of axes, a repeated label for a diagonal, "
        "axes of extent 1 broadcast. Without an arrow the output has the labels that come once, "
        "in alphabetical order.")
    .formula("'ij,jk->ik': y[i,k] = sum over j of a[i,j] * b[j,k]")
    .onnx("Einsum", {"equation"})
    .variadic("xs", kNumber)
    .output("y")
    .required("equation", AttrKind::kString)
    .facts(kProduct)
    .infer(infer_einsum)
    .tolerance({.f32 = 5e-5, .f16 = 5e-3, .bf16 = 4e-2, .f64 = 1e-10})
    .no_layout_tests()
    .sample({"product", {{3, 5}, {5, 4}}, {{"equation", "ij,jk->ik"}}})
    .sample({"batch", {{2, 3, 5}, {2, 4, 5}}, {{"equation", "bij, bkj -> bik"}}})
    .sample({"transpose", {{3, 4, 5}}, {{"equation", "ijk->kij"}}})
    .sample({"sum", {{3, 4}}, {{"equation", "ij->i"}}})
    .sample({"diagonal", {{2, 5, 5}}, {{"equation", "...ii->...i"}}})
    .sample({"trace", {{4, 4}}, {{"equation", "ii"}}})
    .sample({"batch trace", {{2, 4, 4}, {4}}, {{"equation", "bii,i->b"}}})
    .sample({"cube", {{3, 3, 3}, {3, 2}}, {{"equation", "iii,ij->ij"}}})
    .sample({"diagonal and one", {{1, 4, 1}, {4}}, {{"equation", "iii,i->i"}}})
    .sample({"ellipsis summed", {{2, 3, 4}, {4, 3, 5}}, {{"equation", "...ij,jik->k..."}}})
    .sample({"inner", {{5}, {5}}, {{"equation", "i,i"}}})
    .sample({"outer", {{3}, {4}}, {{"equation", "i,j"}}})
    .sample({"ellipsis", {{2, 1, 3, 4}, {5, 4, 2}}, {{"equation", "...ij,...jk->...ik"}}})
    .sample({"summed on one side", {{3, 4}, {5, 3}}, {{"equation", "ij,ki->k"}}})
    .sample({"three", {{2, 3}, {3, 4}, {4, 2}}, {{"equation", "ij,jk,kl->il"}}})
    .sample({"heads", {{2, 3, 4, 5}, {2, 6, 4, 5}}, {{"equation", "bqhd,bkhd->bhqk"}}})
    .sample({"scalar", {{}, {3}}, {{"equation", ",i->i"}}})
    .sample({"nothing to sum", {{2, 0}, {0, 3}}, {{"equation", "ij,jk->ik"}}})
    .sample({"empty", {{0, 3}}, {{"equation", "ij->ji"}}});

namespace {

using Labels = std::vector<size_t>;

std::string letters_of(GradientContext& ctx, const Labels& labels) {
  std::string letters;
  for (const size_t label : labels) {
    if (label >= 52) ctx.refuse("'{}' has more axes than letters", ctx.attrs().s("equation"));
    letters += static_cast<char>(label < 26 ? 'a' + label : 'A' + (label - 26));
  }
  return letters;
}

// A unit matrix with the extent of an axis.
Term unit_matrix(GradientContext& ctx, const Term& x, size_t axis) {
  const Extent extent = ctx.extent(x, static_cast<int64_t>(axis));
  const Term number = extent.term ? extent.term : ctx.ints({extent.number});
  const Term shape = ctx.add("concat", {number, number}, {{"axis", 0}});
  return ctx.add("fill", {shape, ctx.scalar(0, x.dtype())}).op("eye_like", {{"dtype", x.dtype()}});
}

// The axes with a label: more than one are a diagonal, of which axes of extent 1 are not part.
Labels axes_of(const Labels& labels, size_t label, const Dims& shape) {
  Labels axes;
  for (size_t axis = 0; axis < labels.size(); ++axis)
    if (labels[axis] == label) axes.push_back(axis);
  if (axes.size() > 1) std::erase_if(axes, [&](size_t axis) { return shape[axis].is(1); });
  return axes;
}

bool contains(const Labels& labels, size_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

}  // namespace

COMPLEX_GRADIENT(einsum) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < ctx.input_count(); ++i) ranks.push_back(ctx.x(i).shape().size());
  const Einsum einsum = Einsum::parse(ctx.attrs().s("equation"), ranks);
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!ctx.wants(i)) continue;
    const Term x = ctx.x(i);
    const Labels& own = einsum.inputs[i];
    std::vector<Term> inputs{ctx.dy()};
    std::string text = letters_of(ctx, einsum.output);
    Labels there = einsum.output, kept;
    for (size_t k = 0; k < ranks.size(); ++k) {
      if (k == i) continue;
      inputs.push_back(conjugated(ctx.x(k)));
      text += "," + letters_of(ctx, einsum.inputs[k]);
      there.insert(there.end(), einsum.inputs[k].begin(), einsum.inputs[k].end());
    }
    Ints alike;  // axes along which the gradient is the same: they were summed, or have extent 1
    size_t fresh = einsum.labels;
    for (size_t axis = 0; axis < ranks[i]; ++axis) {
      const Labels line = axes_of(own, own[axis], x.shape());
      if (!contains(line, axis) || (line.size() == 1 && !contains(there, own[axis]))) {
        alike.push_back(static_cast<int64_t>(axis));
      } else if (line[0] == axis) {
        kept.push_back(own[axis]);
      } else {
        if (!(x.shape()[line[0]] == x.shape()[axis]))
          ctx.refuse("the extents of a diagonal are not known");
        inputs.push_back(unit_matrix(ctx, x, axis));
        text += "," + letters_of(ctx, {own[axis], fresh});
        kept.push_back(fresh++);
      }
    }
    Term dx = ctx.add("einsum", inputs, {{"equation", text + "->" + letters_of(ctx, kept)}});
    if (!alike.empty()) dx = dx.op("unsqueeze", {{"axes", alike}});
    ctx.set(i, ctx.expand_like(dx, x));
  }
}

}  // namespace anymps
