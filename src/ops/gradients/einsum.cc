// SPDX-License-Identifier: Apache-2.0
// The gradient of einsum: for each operand, another einsum of the gradient and the other operands.
// A label that comes twice in an operand, a diagonal, gets a label of its own for each axis and a
// unit matrix that holds them together.
#include "semantics/einsum.h"

#include <algorithm>

#include "ops/gradients/conjugate.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;
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

// The axes with a label: more than one are a diagonal, which axes of extent 1 are no part of.
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
