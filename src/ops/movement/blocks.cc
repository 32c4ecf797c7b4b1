// SPDX-License-Identifier: Apache-2.0
// Elements in another arrangement: interleave, space_to_batch, batch_to_space, reinterpret, and
// coordinates.
#include <algorithm>

#include "ops/axis_input.h"
#include "ops/gradient_parts.h"
#include "ops/movement/blocks.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

void infer_interleave(InferContext& ctx) {
  const size_t axis = ctx.axis("axis", 0);
  Dims shape = common_shape(ctx);
  shape[axis] = ordered_product({shape[axis], static_cast<int64_t>(ctx.input_count())});
  ctx.set(0, std::move(shape));
}

void infer_blocks(InferContext& ctx, bool to_batch) {
  const Blocks blocks = blocks_of(ctx.attrs, ctx.rank(0), ctx.op.name.c_str());
  Dims shape = ctx.shape(0);
  Dim& batch = shape[blocks.batch];
  Dims sizes(blocks.sizes.begin(), blocks.sizes.end());
  for (size_t i = 0; i < blocks.axes.size(); ++i) {
    Dim& extent = shape[blocks.axes[i]];
    if (!to_batch) {
      extent = ordered_product({extent, sizes[i]});
      continue;
    }
    const Quotient part = quotient({extent}, {sizes[i]}, ctx.op.name.c_str());
    ctx.check(part.exact || !extent.known(), "extent {} of axis {} does not divide by {}",
              extent.str(), blocks.axes[i], blocks.sizes[i]);
    extent = part.value;
  }
  if (to_batch) {
    sizes.push_back(batch);
    batch = ordered_product(sizes);
  } else {
    const Quotient part = quotient({batch}, sizes, ctx.op.name.c_str());
    ctx.check(part.exact || !batch.known(), "extent {} of axis {} does not divide by the block",
              batch.str(), blocks.batch);
    batch = part.value;
  }
  ctx.set(0, std::move(shape));
}

void infer_reinterpret(InferContext& ctx) {
  const DType to = ctx.attrs.dtype("dtype");
  ctx.check(to != DType::kString, "bits are no strings");
  Dims shape = ctx.shape(0);
  const auto from_size = static_cast<int64_t>(size_of(ctx.dtype(0))),
             to_size = static_cast<int64_t>(size_of(to));
  if (from_size != to_size) {
    ctx.check(!shape.empty(), "a scalar of {} cannot become {}", name(ctx.dtype(0)), name(to));
    Dim& last = shape.back();
    const Quotient scaled = quotient({last, from_size}, {to_size}, ctx.op.name.c_str());
    ctx.check(scaled.exact || !last.known(), "{} elements of {} are no whole number of {}",
              last.str(), name(ctx.dtype(0)), name(to));
    last = scaled.value;
  }
  ctx.set(0, std::move(shape));
}

void infer_coordinates(InferContext& ctx) {
  const DType dtype = ctx.attrs.dtype("dtype");
  ctx.check(contains(kReal, dtype), "dtype {} is not real", name(dtype));
  const std::optional<Dims> shape = ctx.ints(0, "shape");
  const std::optional<int64_t> axis = known_int(ctx, 1, "axis");
  if (!shape) return set_fresh_shape(ctx, 0, dtype);
  const auto rank = std::ssize(*shape);
  ctx.check(!axis || (*axis >= -rank && *axis < rank), "axis {} is out of range for rank {}",
            axis.value_or(0), rank);
  for (const Dim& extent : *shape)
    ctx.check(!extent.known() || extent.value() >= 0, "shape {} has a negative extent",
              to_string(*shape));
  ctx.set(0, dtype, *shape);
}

}  // namespace

Blocks blocks_of(const Attrs& attrs, int64_t rank, const char* op) {
  Blocks blocks;
  blocks.axes = normalize_axes(attrs.ints("axes"), rank, op);
  blocks.sizes = attrs.ints("block");
  blocks.batch = normalize_axis(attrs.i("batch_axis"), rank, op);
  blocks.shuffled = attrs.b("pixel_shuffle");
  require(blocks.axes.size() == blocks.sizes.size(), "[{}] {} axes and {} block sizes", op,
          blocks.axes.size(), blocks.sizes.size());
  require(std::count(blocks.axes.begin(), blocks.axes.end(), blocks.batch) == 0,
          "[{}] axis {} is both spatial and the batch", op, blocks.batch);
  for (int64_t size : blocks.sizes)
    require(size > 0 && size <= 1 << 20, "[{}] block size {} is out of range", op, size);
  return blocks;
}

OP(interleave)
    .doc("Joins tensors of one shape along an axis, taking an element of each in turn.")
    .formula("y[.., i * n + k, ..] = xs[k][.., i, ..]")
    .mps("concatTensors:dimension:interleave:name:")
    .variadic("xs", kEvery)
    .output("y")
    .attr("axis", 0, "the axis to join along")
    .facts(kMoves)
    .infer(infer_interleave)
    .sample({"vectors", {{3}, {3}}, {}})
    .sample({"last", {{2, 3}, {2, 3}, {2, 3}}, {{"axis", -1}}})
    .sample({"one", {{2, 2}}, {}})
    .sample({"empty", {{0, 2}, {0, 2}}, {}});

#define BLOCKS(name, to_batch, text, math)                                                       \
  OP(name)                                                                                       \
      .doc(text)                                                                                 \
      .formula(math)                                                                             \
      .input("x", kEvery)                                                                        \
      .output("y")                                                                               \
      .required("axes", AttrKind::kInts, "the spatial axes")                                     \
      .required("block", AttrKind::kInts, "the block's extent along each of axes")               \
      .attr("batch_axis", 0, "the axis that holds the places in a block")                        \
      .attr("pixel_shuffle", false,                                                              \
            "the places in a block are neighbours on the batch axis; otherwise the batches are") \
      .facts(kMoves)                                                                             \
      .infer([](InferContext& ctx) { infer_blocks(ctx, to_batch); })

static auto block_samples(const Shape& image, const Shape& shuffled, const Shape& deep) {
  return [=](OpWriter& op) -> OpWriter& {
    return op.sample({"image", {image}, {{"axes", Ints{1, 2}}, {"block", Ints{2, 3}}}})
        .sample({"shuffle",
                 {shuffled},
                 {{"axes", Ints{2, 1}}, {"block", Ints{3, 2}}, {"pixel_shuffle", true}}})
        .sample(
            {"depth", {deep}, {{"axes", Ints{-2, -1}}, {"block", Ints{2, 2}}, {"batch_axis", 1}}})
        .sample({"empty", {{0, 4}}, {{"axes", Ints{1}}, {"block", Ints{2}}}});
  };
}

BLOCKS(space_to_batch, true, "Moves blocks of the spatial axes to the batch axis.",
       "y[place * batches + b, ..i..] = x[b, ..i * block + place..]")
    .mps("spaceToBatchTensor:spatialAxes:batchAxis:blockDimensions:usePixelShuffleOrder:name:")
    .mps(
        "spaceToBatchTensor:spatialAxesTensor:batchAxisTensor:blockDimensionsTensor:"
        "usePixelShuffleOrder:name:")
    .with(block_samples({2, 4, 6, 3}, {2, 4, 6}, {2, 3, 4, 4}));

BLOCKS(batch_to_space, false, "Moves blocks from the batch axis to the spatial axes.",
       "y[b, ..i * block + place..] = x[place * batches + b, ..i..]")
    .mps("batchToSpaceTensor:spatialAxes:batchAxis:blockDimensions:usePixelShuffleOrder:name:")
    .mps(
        "batchToSpaceTensor:spatialAxesTensor:batchAxisTensor:blockDimensionsTensor:"
        "usePixelShuffleOrder:name:")
    .with(block_samples({12, 2, 2, 3}, {12, 2, 2}, {2, 8, 2, 3}));

OP(reinterpret)
    .doc("The same bytes as elements of another dtype; the last axis is scaled by the sizes.")
    .formula("bytes(y) = bytes(x)")
    .mps("reinterpretCastTensor:toType:name:")
    .input("x", kAny | kNarrow)
    .output("y", "")
    .required("dtype", AttrKind::kDType, "the dtype of y")
    .infer(infer_reinterpret)
    .sample({"bytes", {{2, 4}}, {{"dtype", DType::kU8}}})
    .sample({"words", {{3, 8}}, {{"dtype", DType::kI32}}})
    .sample({"longs", {{16}}, {{"dtype", DType::kI64}}})
    .sample({"empty", {{0, 8}}, {{"dtype", DType::kI16}}});

OP(coordinate_along_axis)
    .doc("A tensor of the shape given that holds each element's place along an axis.")
    .formula("y[.., i, ..] = i")
    .mps("coordinateAlongAxis:withShape:name:")
    .mps("coordinateAlongAxisTensor:withShape:name:")
    .mps("coordinateAlongAxis:withShapeTensor:name:")
    .mps("coordinateAlongAxisTensor:withShapeTensor:name:")
    .ints("shape", "the shape")
    .integer("axis", 0, "whose places are told", "A")
    .output("y", "")
    .attr("dtype", DType::kI32, "of y")
    .infer(infer_coordinates)
    .sample({"rows", {}, {{"shape", Ints{2, 3}}}})
    .sample({"columns", {}, {{"shape", Ints{2, 3}}, {"axis", -1}, {"dtype", DType::kF32}}})
    .sample({"inputs", {{3}, {}}, {}, {{0, {2, 2, 2}}, {1, {1}}}})
    .sample({"empty", {}, {{"shape", Ints{0, 3}}}});

ZERO_GRADIENT(coordinate_along_axis, "reads a shape alone");
ZERO_GRADIENT(reinterpret, "the bits of a number are no function that has one");
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

}  // namespace anymps
