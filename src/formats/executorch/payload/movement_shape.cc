// SPDX-License-Identifier: Apache-2.0
// Nodes that move elements or look at them in another shape. Shapes are those of the export: where
// the program's inputs are symbolic, a view to fixed extents stays one.
#include <algorithm>
#include <numeric>

#include "formats/executorch/payload/node_kinds.h"

namespace anymps::executorch {

namespace {

Value* unary_input(NodeCall& c) { return c.in(field::Unary::kInput); }
void unary_result(NodeCall& c, Value* y) { c.out(field::Unary::kOutput, y); }

void Permute(NodeCall& c) {
  Value* x = unary_input(c);
  Ints perm = c.counted(field::Permute::kNumDims, field::Permute::kPerm);
  for (int64_t& axis : perm) axis = c.normalize(axis, c.rank(x));
  // An empty list would mean: reversed.
  unary_result(c, perm.empty() ? x : c.add("transpose", {x}, {{"perm", perm}}));
}

void View(NodeCall& c) {
  const Ints shape = c.counted(field::View::kNumDims, field::View::kShape);
  for (const int64_t extent : shape)
    c.check(extent >= -1, "shape [{}] has a negative extent", fmt::join(shape, ", "));
  unary_result(c, c.reshaped(unary_input(c), shape));
}

void Expand(NodeCall& c) {
  const Ints shape = c.counted(field::View::kNumDims, field::View::kShape);
  Value* x = unary_input(c);
  if (x->type.ranked && x->shape() == Dims(shape.begin(), shape.end())) return unary_result(c, x);
  unary_result(c, c.add("expand", {x}, {{"shape", shape}}));
}

// PyTorch passes over inputs of shape [0], whatever the rank of the others.
void Cat(NodeCall& c) {
  using F = field::Cat;
  Values inputs = c.ins(F::kInputs);
  for (const Value* x : inputs) c.check(x != nullptr, "an input is missing");
  const auto is_nothing = [](const Value* x) {
    return x->type.ranked && x->shape().size() == 1 && x->shape()[0].is(0);
  };
  const bool all = std::all_of(inputs.begin(), inputs.end(), is_nothing);
  const DType type = inputs.empty() ? DType::kF32 : c.computed(inputs, F::kOutput);
  if (!all) inputs.erase(std::remove_if(inputs.begin(), inputs.end(), is_nothing), inputs.end());
  c.check(!inputs.empty(), "it has no inputs");
  const int64_t axis = c.normalize(c.i(F::kDim), c.rank(inputs[0]));
  for (Value*& x : inputs) x = c.as(x, type);
  c.out(F::kOutput, inputs.size() == 1 ? inputs[0] : c.add("concat", inputs, {{"axis", axis}}));
}

// Axes of another extent than 1 stay.
void Squeeze(NodeCall& c) {
  Value* x = unary_input(c);
  Ints axes;
  for (const int64_t dim : c.ints(field::Squeeze::kDims)) {
    const int64_t axis = c.normalize(dim, std::max<int64_t>(c.rank(x), 1));
    if (c.rank(x) == 0) continue;
    const Dim& extent = x->shape()[axis];
    if (!extent.known() || extent.is(1)) axes.push_back(axis);
  }
  unary_result(c, axes.empty() ? x : c.add("squeeze", {x}, {{"axes", axes}}));
}

void Unsqueeze(NodeCall& c) {
  Value* x = unary_input(c);
  unary_result(c, c.add("unsqueeze", {x},
                        {{"axes", Ints{c.normalize(c.i(field::Unsqueeze::kDim), c.rank(x) + 1)}}}));
}

void Select(NodeCall& c) {
  using F = field::Select;
  Value* x = unary_input(c);
  const int64_t axis = c.normalize(c.i(F::kDim), c.rank(x)), index = c.i(F::kIndex);
  const Dim& extent = x->shape()[axis];
  if (extent.known())
    c.check(index >= -extent.value() && index < extent.value(),
            "index {} is out of range for an axis of extent {}", index, extent.value());
  const int64_t end = index == -1 ? INT64_MAX : index + 1;
  Value* y =
      c.add("slice", {x}, {{"starts", Ints{index}}, {"ends", Ints{end}}, {"axes", Ints{axis}}});
  unary_result(c, c.add("squeeze", {y}, {{"axes", Ints{axis}}}));
}

void Slice(NodeCall& c) {
  using F = field::Slice;
  Value* x = unary_input(c);
  const int64_t axis = c.normalize(c.l(F::kDim), c.rank(x)), step = c.l(F::kStep);
  c.check(step > 0, "step is {}, must be positive", step);
  unary_result(c, c.add("slice", {x},
                        {{"starts", Ints{c.l(F::kStart)}},
                         {"ends", Ints{c.l(F::kEnd)}},
                         {"axes", Ints{axis}},
                         {"steps", Ints{step}}}));
}

// All axes before the last three are one batch.
void PixelShuffle(NodeCall& c) {
  Value* x = unary_input(c);
  const int64_t rank = c.rank(x), factor = c.i(field::PixelShuffle::kFactor);
  c.check(rank >= 3, "the input must have rank 3 at least, it has {}", rank);
  c.check(factor > 0 && factor < (1 << 15), "upscale_factor is {}", factor);
  const NamedAttrs attrs = {{"block", factor}, {"mode", "CRD"}};
  if (rank == 4) return unary_result(c, c.add("depth_to_space", {x}, attrs));
  const auto extents = [&](const Value* value, int64_t first, int64_t last) {
    return c.add("shape", {const_cast<Value*>(value)}, {{"start", first}, {"end", last}});
  };
  Value* flat =
      c.add("reshape", {x, c.add("concat", {c.graph.ints({-1}), extents(x, rank - 3, rank)})});
  Value* y = c.add("depth_to_space", {flat}, attrs);
  Value* last = extents(y, 1, 4);
  Value* shape = rank == 3 ? last : c.add("concat", {extents(x, 0, rank - 3), last});
  unary_result(c, c.add("reshape", {y, shape}));
}

void SplitWithSizes(NodeCall& c) {
  using F = field::Split;
  Value* x = c.in(F::kInput);
  const Ints sizes = c.ints(F::kSizes);
  c.check(!sizes.empty(), "split_sizes is empty");
  const int64_t axis = c.normalize(c.i(F::kDim), c.rank(x));
  c.outs(F::kOutputs, c.add_all("split", {x}, {{"axis", axis}, {"sizes", sizes}}, sizes.size()));
}

// Pads are in PyTorch's order: the last axis first, its begin and its end.
void ConstantPadND(NodeCall& c) {
  using F = field::ConstantPad;
  Value* x = unary_input(c);
  const Ints pad = c.ints(F::kPad);
  const size_t rank = c.rank(x);
  c.check(pad.size() % 2 == 0 && pad.size() <= 2 * rank,
          "pad has {} entries for an input of rank {}", pad.size(), rank);
  Ints pads(2 * rank);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    pads[rank - 1 - i] = pad[2 * i];
    pads[2 * rank - 1 - i] = pad[2 * i + 1];
  }
  unary_result(c, c.add("pad", {x}, {{"pads", pads}, {"value", c.f(F::kValue)}}));
}

const NodeConverters kMpsShape{
    {"MPSCat", Cat},
    {"MPSConstantPadND", ConstantPadND},
    {"MPSExpand", Expand},
    {"MPSPermute", Permute},
    {"MPSPixelShuffle", PixelShuffle},
    {"MPSSelect", Select},
    {"MPSSlice", Slice},
    {"MPSSplitWithSizes", SplitWithSizes},
    {"MPSSqueeze", Squeeze},
    {"MPSUnsqueeze", Unsqueeze},
    {"MPSView", View},
};

}  // namespace

}  // namespace anymps::executorch
