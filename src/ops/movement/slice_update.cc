// SPDX-License-Identifier: Apache-2.0
// The counterparts of slice: slice_update writes into the range, slice_gradient writes into zeros.
#include "ops/expect.h"
#include "ops/gradient.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

// The range that starts, ends, axes and steps (inputs `first` on, or attributes) name in a tensor
// of this shape; nothing while they are not known.
std::optional<Dims> range_shape(InferContext& ctx, const Dims& shape, size_t first) {
  static const char* kNames[] = {"starts", "ends", "axes", "steps"};
  std::vector<int64_t> lists[4];
  for (size_t i = 0; i < 4; ++i) {
    const auto list = numbers(ctx.ints(first + i, kNames[i]));
    if (!list) return std::nullopt;
    lists[i] = *list;
  }
  if (!all_known(shape)) return std::nullopt;
  Dims range;
  for (const SliceRange& axis :
       slice_ranges(to_shape(shape), lists[0], lists[1], lists[2], lists[3], ctx.op.name.c_str()))
    range.push_back(axis.length);
  return range;
}

void infer_slice_update(InferContext& ctx) {
  if (const auto range = range_shape(ctx, ctx.shape(0), 2)) expect_shape(ctx, 1, *range);
  ctx.set(0, ctx.shape(0));
}

void infer_slice_gradient(InferContext& ctx) {
  const std::optional<Dims> shape = ctx.ints(1, "shape");
  if (!shape) return set_fresh_shape(ctx, 1);
  for (const Dim& extent : *shape)
    ctx.check(!extent.known() || extent.value() >= 0, "shape {} has a negative extent",
              to_string(*shape));
  if (const auto range = range_shape(ctx, *shape, 2)) expect_shape(ctx, 0, *range);
  ctx.set(0, *shape);
}

}  // namespace

OP(slice_update)
    .doc("x with the elements of a range, as slice names it, replaced by an update.")
    .formula("y = x, y[start + i * step] = update[i] along each of axes")
    .input("x", kEvery)
    .input("update", kEvery)
    .output("y")
    .with(slice_range)
    .mps(
        "sliceUpdateDataTensor:updateTensor:startsTensor:endsTensor:stridesTensor:startMask:"
        "endMask:squeezeMask:name:")
    .mps(
        "sliceUpdateDataTensor:updateTensor:starts:ends:strides:startMask:endMask:squeezeMask:"
        "name:")
    .mps("sliceUpdateDataTensor:updateTensor:startsTensor:endsTensor:stridesTensor:name:")
    .mps("sliceUpdateDataTensor:updateTensor:starts:ends:strides:name:")
    .facts(kMoves)
    .infer(infer_slice_update)
    .sample({"plain", {{5, 6}, {3, 4}}, {{"starts", Ints{1, 2}}, {"ends", Ints{4, 6}}}})
    .sample(
        {"backwards",
         {{4, 7}, {4, 3}},
         {{"starts", Ints{-1}}, {"ends", Ints{INT64_MIN}}, {"axes", Ints{1}}, {"steps", Ints{-3}}}})
    .sample({"inputs",
             {{4, 5}, {2, 5}, {1}, {1}, {1}, {1}},
             {},
             {{2, {0}}, {3, {4}}, {4, {0}}, {5, {2}}}})
    .sample({"nothing", {{4, 5}, {0, 5}}, {{"starts", Ints{3}}, {"ends", Ints{2}}}})
    .sample({"scalar", {{}, {}}, {}});

OP(slice_gradient)
    .doc("The gradient of slice: zeros of x's shape with dy in the range.")
    .formula("dx = 0, dx[start + i * step] = dy[i] along each of axes")
    .input("dy", kAny)
    .ints("shape", "of x", "S", "of x; wins over the attribute")
    .output("dx")
    .with(slice_range)
    .mps("sliceGradientTensor:fwdInShapeTensor:starts:ends:strides:name:")
    .mps(
        "sliceGradientTensor:fwdInShapeTensor:startTensor:endTensor:strideTensor:startMask:"
        "endMask:squeezeMask:name:")
    .mps("sliceGradientTensor:fwdInShapeTensor:startTensor:sizeTensor:squeezeMask:name:")
    .mps(
        "sliceGradientTensor:fwdInShapeTensor:starts:ends:strides:startMask:endMask:squeezeMask:"
        "name:")
    .infer(infer_slice_gradient)
    .sample({"plain",
             {{3, 4}},
             {{"shape", Ints{5, 6}}, {"starts", Ints{1, 2}}, {"ends", Ints{4, 6}}}})
    .sample({"inputs",
             {{2, 5}, {2}, {1}, {1}, {1}, {1}},
             {},
             {{1, {4, 5}}, {2, {0}}, {3, {4}}, {4, {0}}, {5, {2}}}})
    .sample({"nothing", {{0, 5}}, {{"shape", Ints{4, 5}}, {"starts", Ints{3}}, {"ends", Ints{2}}}});

namespace {

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

}  // namespace

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

}  // namespace anymps
