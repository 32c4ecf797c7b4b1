// SPDX-License-Identifier: Apache-2.0
// Ops that pick elements by index: gather, gather_nd, gather_along_axis. Negative indices count
// from the end; an index outside the axis is an error when the op runs.
#include <algorithm>

#include "ops/gradient_parts.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

size_t batch_dims(InferContext& ctx, int64_t most) {
  const int64_t batch = ctx.attrs.i("batch_dims");
  ctx.check(batch >= 0 && batch <= most, "batch_dims {} is out of range [0, {}]", batch, most);
  return batch;
}

Dims batch_shape(InferContext& ctx, size_t batch) {
  Dims shape;
  for (size_t i = 0; i < batch; ++i)
    shape.push_back(same_extent(ctx, ctx.shape(0)[i], ctx.shape(1)[i], "x and indices",
                                static_cast<int64_t>(i)));
  return shape;
}

void infer_gather(InferContext& ctx) {
  const Dims &x = ctx.shape(0), &indices = ctx.shape(1);
  const int64_t axis = ctx.axis("axis", 0);
  const size_t batch = batch_dims(ctx, std::min(axis, ctx.rank(1)));
  Dims shape = batch_shape(ctx, batch);
  shape.insert(shape.end(), x.begin() + static_cast<int64_t>(batch), x.begin() + axis);
  shape.insert(shape.end(), indices.begin() + static_cast<int64_t>(batch), indices.end());
  shape.insert(shape.end(), x.begin() + axis + 1, x.end());
  ctx.set(0, std::move(shape));
  const Dims* content = ctx.content(0);
  const auto at = ctx.content(1) ? numbers(*ctx.content(1)) : std::nullopt;
  if (!content || !at || axis != 0 || batch != 0 || !x[0].known() || !all_known(x)) return;
  const int64_t extent = x[0].value();
  const int64_t block = extent == 0 ? 0 : std::ssize(*content) / extent;
  Dims picked;
  for (int64_t index : *at) {
    ctx.check(index >= -extent && index < extent,
              "index {} is out of range for axis 0 of extent {}", index, extent);
    const int64_t first = (index < 0 ? index + extent : index) * block;
    picked.insert(picked.end(), content->begin() + first, content->begin() + first + block);
  }
  ctx.set_content(0, std::move(picked));
}

void infer_gather_nd(InferContext& ctx) {
  const Dims &x = ctx.shape(0), &indices = ctx.shape(1);
  ctx.check(!indices.empty(), "indices must have rank 1 or more");
  const size_t batch = batch_dims(ctx, std::min(ctx.rank(0), ctx.rank(1) - 1));
  if (!indices.back().known()) return ctx.set_unranked(0);
  const int64_t depth = indices.back().value(), most = ctx.rank(0) - static_cast<int64_t>(batch);
  ctx.check(depth <= most, "the last axis of indices has {} entries, at most {} are possible",
            depth, most);
  Dims shape = batch_shape(ctx, batch);
  shape.insert(shape.end(), indices.begin() + static_cast<int64_t>(batch), indices.end() - 1);
  shape.insert(shape.end(), x.begin() + static_cast<int64_t>(batch) + depth, x.end());
  ctx.set(0, std::move(shape));
}

void infer_gather_along_axis(InferContext& ctx) {
  const Dims &x = ctx.shape(0), &indices = ctx.shape(1);
  const int64_t axis = ctx.axis("axis", 0);
  ctx.check(x.size() == indices.size(), "x has rank {}, indices have rank {}", x.size(),
            indices.size());
  for (size_t i = 0; i < x.size(); ++i)
    ctx.check(static_cast<int64_t>(i) == axis || !x[i].known() || !indices[i].known() ||
                  indices[i].value() <= x[i].value(),
              "indices have the extent {} along axis {}, x only {}", indices[i].str(), i,
              x[i].str());
  ctx.set(0, indices);
}

auto picking(const char* indices_doc) {
  return [=](OpWriter& op) -> OpWriter& {
    return op.input("x", kEvery)
        .input("indices", kIndex, "I", indices_doc)
        .output("y")
        .facts(kMoves)
        .domain("indices", -2, 1);
  };
}

}  // namespace

OP(gather)
    .doc(
        "Picks slices of x along an axis. The first batch_dims axes of x and indices go "
        "together.")
    .formula("y[b.., i.., j.., k..] = x[b.., i.., indices[b.., j..], k..]")
    .mps("gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions:name:")
    .with(picking("in [-n, n) for an axis of extent n"))
    .attr("axis", 0, "the axis to pick along")
    .attr("batch_dims", 0, "leading axes that x and indices share")
    .infer(infer_gather)
    .sample({"rows", {{4, 3}, {2, 2}}, {}, {{1, {0, 3, -1, 2}}}})
    .sample({"columns", {{3, 4}, {3}}, {{"axis", -1}}, {{1, {3, 0, 0}}}})
    .sample({"middle", {{2, 4, 3}, {2, 1}}, {{"axis", 1}}, {{1, {-4, 2}}}})
    .sample({"one", {{4, 3}, {}}, {}, {{1, {2}}}})
    .sample({"batch", {{2, 3, 4}, {2, 2}}, {{"axis", 1}, {"batch_dims", 1}}, {{1, {0, 2, 1, -1}}}})
    .sample(
        {"batch_later", {{2, 3, 4}, {2, 2}}, {{"axis", 2}, {"batch_dims", 1}}, {{1, {0, 3, 1, 2}}}})
    .sample({"no_indices", {{4, 3}, {0}}, {}, {{1, {}}}})
    .sample({"empty", {{4, 0}, {2}}, {}, {{1, {1, 3}}}});

OP(gather_nd)
    .doc(
        "Picks slices of x by index tuples: the last axis of indices holds one place for each of "
        "the axes after the first batch_dims.")
    .formula("y[b.., i.., k..] = x[b.., indices[b.., i.., :].., k..]")
    .mps("gatherNDWithUpdatesTensor:indicesTensor:batchDimensions:name:")
    .with(picking("in [-n, n) for an axis of extent n"))
    .attr("batch_dims", 0, "leading axes that x and indices share")
    .infer(infer_gather_nd)
    .sample({"elements", {{2, 3}, {3, 2}}, {}, {{1, {0, 0, 1, -1, 1, 0}}}})
    .sample({"rows", {{2, 3, 2}, {2, 1}}, {}, {{1, {1, 0}}}})
    .sample({"batch", {{2, 3, 2}, {2, 1}}, {{"batch_dims", 1}}, {{1, {1, -1}}}})
    .sample({"one", {{2, 3}, {2}}, {}, {{1, {1, 2}}}})
    .sample({"all_of_x", {{2, 3}, {2, 0}}, {}, {{1, {}}}})
    .sample({"no_indices", {{2, 3}, {0, 2}}, {}, {{1, {}}}});

OP(gather_along_axis)
    .doc("Picks single elements along an axis: the index at each place says where on the axis.")
    .formula("y[i.., j, k..] = x[i.., indices[i.., j, k..], k..]")
    .mps("gatherAlongAxis:withUpdatesTensor:indicesTensor:name:")
    .mps("gatherAlongAxisTensor:withUpdatesTensor:indicesTensor:name:")
    .with(picking("in [-n, n) for an axis of extent n; gives y's shape"))
    .attr("axis", 0, "the axis to pick along")
    .infer(infer_gather_along_axis)
    .sample({"rows", {{3, 2}, {2, 2}}, {}, {{1, {0, 2, -1, 1}}}})
    .sample({"columns", {{2, 3}, {2, 4}}, {{"axis", -1}}, {{1, {0, 2, 1, -3, 1, 1, 0, 2}}}})
    .sample({"part", {{3, 3}, {1, 2}}, {{"axis", 1}}, {{1, {2, 0}}}})
    .sample({"empty", {{3, 2}, {0, 2}}, {}, {{1, {}}}});

namespace {

Term zeros(GradientContext& ctx) { return ctx.fill_like(ctx.x(), 0); }

}  // namespace

COMPLEX_GRADIENT(gather) {
  if (ctx.attrs().i("batch_dims") != 0) return ctx.set(0, move_back(ctx));
  const Term x = ctx.x(), indices = ctx.x(1);
  const int64_t axis = axis_of(ctx);
  const int64_t picked = indices.rank();
  Extents shape;
  for (int64_t i = 0; i < axis; ++i) shape.push_back(ctx.extent(x, i));
  Term dy = ctx.dy(), list = indices;
  if (picked != 1) {
    Extent count = 1;
    if (indices.type().static_shape())
      count = element_count(to_shape(indices.shape()));
    else
      count = ctx.reshape(indices.op("size"), {1});
    shape.push_back(count);
    for (int64_t i = axis + 1; i < x.rank(); ++i) shape.push_back(ctx.extent(x, i));
    dy = ctx.reshape(dy, shape);
    list = ctx.reshape(indices, {count});
  }
  ctx.set(0, ctx.add("scatter", {dy, list, zeros(ctx)}, {{"axis", axis}, {"mode", "add"}}));
}

COMPLEX_GRADIENT(gather_nd) {
  ctx.set(0, ctx.add("scatter_nd", {ctx.dy(), ctx.x(1), zeros(ctx)},
                     {{"batch_dims", ctx.attrs().i("batch_dims")}, {"mode", "add"}}));
}

COMPLEX_GRADIENT(gather_along_axis) {
  ctx.set(0, ctx.add("scatter_along_axis", {ctx.dy(), ctx.x(1), zeros(ctx)},
                     {{"axis", ctx.attrs().i("axis")}, {"mode", "add"}}));
}

}  // namespace anymps
