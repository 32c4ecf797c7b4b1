// SPDX-License-Identifier: Apache-2.0
// Pooling over two axes.
#include "formats/executorch/payload/node_kinds.h"

namespace anymps::executorch {

namespace {

using PoolField = field::Pool;

struct NodeWindow {
  Value* x;  // of rank 4
  bool batched;
  Ints kernel, strides, pads, dilations;
  bool ceil_mode;
  NamedAttrs attrs;

  explicit NodeWindow(NodeCall& c) {
    x = c.in(PoolField::kInput);
    batched = c.rank(x) == 4;
    c.check(batched || c.rank(x) == 3, "the input must have rank 3 or 4, it has {}", c.rank(x));
    if (!batched) x = c.add("unsqueeze", {x}, {{"axes", Ints{0}}});
    kernel = {c.i(PoolField::kKernelHeight), c.i(PoolField::kKernelWidth)};
    strides = {c.i(PoolField::kStrideHeight), c.i(PoolField::kStrideWidth)};
    pads = {c.i(PoolField::kTop), c.i(PoolField::kLeft), c.i(PoolField::kBottom),
            c.i(PoolField::kRight)};
    dilations = {c.i(PoolField::kDilationHeight), c.i(PoolField::kDilationWidth)};
    ceil_mode = c.b(PoolField::kCeilMode);
    // The exporter makes room for the last windows by a multiple of the padding. PyTorch has the
    // same padding at both ends, and lets windows stick out.
    for (size_t i = 0; ceil_mode && i < 2; ++i)
      if (pads[i + 2] == pads[i] * strides[i]) pads[i + 2] = pads[i];
    attrs = {{"kernel", kernel}, {"strides", strides}, {"pads", pads}, {"ceil_mode", ceil_mode}};
  }

  Value* unbatched(NodeBuilder& c, Value* y) const {
    return batched ? y : c.add("squeeze", {y}, {{"axes", Ints{0}}});
  }
};

// Places are counted over one plane.
void MaxPool2DWithIndices(NodeCall& c) {
  NodeWindow window(c);
  window.attrs.emplace_back("dilations", window.dilations);
  c.out(PoolField::kOutput1, window.unbatched(c, c.add("max_pool", {window.x}, window.attrs)));
  window.attrs.emplace_back("indices", "global_2d");
  c.out_later(PoolField::kOutput2, [builder = NodeBuilder(c), window]() mutable {
    return window.unbatched(builder, builder.add_all("max_pool", {window.x}, window.attrs, 2)[1]);
  });
}

// The sums of the windows. All of what they cover is laid around the input as zeros, so that every
// window has the same number of elements.
Value* window_sums(NodeCall& c, const NodeWindow& window) {
  Value* pooled = c.add("avg_pool", {window.x}, window.attrs);
  const Dims shape = pooled->shape();
  c.graph.erase(pooled->producer);
  Ints pads = {0, 0, window.pads[0], window.pads[1], 0, 0, window.pads[2], window.pads[3]};
  for (size_t i = 0; window.ceil_mode && i < 2; ++i) {
    const Dim &in = window.x->shape()[i + 2], &out = shape[i + 2];
    if (!in.known() || !out.known())
      c.unsupported("divisor_override and ceil_mode need an input of known height and width");
    pads[i + 6] =
        (out.value() - 1) * window.strides[i] + window.kernel[i] - in.value() - pads[i + 2];
  }
  Value* padded = c.add("pad", {window.x}, {{"pads", pads}});
  Value* means =
      c.add("avg_pool", {padded}, {{"kernel", window.kernel}, {"strides", window.strides}});
  const auto area = static_cast<double>(window.kernel[0] * window.kernel[1]);
  return c.add("mul", {means, c.scalar_like(means, area)});
}

void AvgPool2D(NodeCall& c) {
  NodeWindow window(c);
  window.attrs.emplace_back("count_include_pad", c.b(PoolField::kCountIncludePad));
  const int64_t divisor = c.i(PoolField::kDivisorOverride);
  Value* y;
  if (divisor == 0) {
    y = c.add("avg_pool", {window.x}, window.attrs);
  } else {
    Value* sums = window_sums(c, window);
    y = c.add("div", {sums, c.scalar_like(sums, static_cast<double>(divisor))});
  }
  c.out(PoolField::kOutput1, window.unbatched(c, y));
}

const NodeConverters kMpsPool{
    {"MPSAvgPool2D", AvgPool2D},
    {"MPSMaxPool2DWithIndices", MaxPool2DWithIndices},
};

}  // namespace

}  // namespace anymps::executorch
