// SPDX-License-Identifier: Apache-2.0
// Ops that write elements to places that indices name: scatter, scatter_nd, scatter_along_axis.
// The result starts as `data`, or as zeros of the shape given; updates are applied one after the
// other in row-major order, so that collisions have one result.
#include <algorithm>

#include "ops/axis_input.h"
#include "ops/gradient_parts.h"
#include "ops/shape_rules.h"
#include "semantics/scatter_modes.h"

namespace anymps {

namespace {

// The result's shape: data's, or the attribute's.
Dims target_shape(InferContext& ctx) {
  const std::string& mode = ctx.attrs.s("mode");
  const DType dtype = ctx.dtype(0);
  const bool ordered = mode == "min" || mode == "max";
  ctx.check(mode == "set" || contains(ordered ? kReal : kNumber, dtype),
            "mode {} is not defined for {}", mode, name(dtype));
  ctx.check(ctx.attrs.b("include_self") || (mode != "sub" && mode != "div"),
            "mode {} needs what is there: include_self must be true", mode);
  if (ctx.has(2)) return ctx.shape(2);
  Dims shape;
  for (int64_t extent : ctx.attrs.ints("shape")) {
    ctx.check(extent >= 0, "shape has the negative extent {}", extent);
    shape.push_back(extent);
  }
  return shape;
}

void expect_updates(InferContext& ctx, const Dims& expected) {
  const Dims& updates = ctx.shape(0);
  ctx.check(updates.size() == expected.size(), "updates have the shape {}, must have {}",
            to_string(updates), to_string(expected));
  for (size_t i = 0; i < expected.size(); ++i)
    ctx.check(!updates[i].known() || !expected[i].known() || updates[i] == expected[i],
              "updates have the shape {}, must have {}", to_string(updates), to_string(expected));
}

void set_result(InferContext& ctx, Dims shape, const Dims& updates) {
  expect_updates(ctx, updates);
  ctx.set(0, std::move(shape));
}

void infer_scatter(InferContext& ctx) {
  Dims shape = target_shape(ctx);
  const auto rank = std::ssize(shape), given = ctx.attrs.i("axis");
  ctx.check(given >= -rank && given < rank, "axis {} is out of range for rank {}", given, rank);
  ctx.check(ctx.rank(1) == 1, "indices must have rank 1, they have rank {}", ctx.rank(1));
  Dims updates = shape;
  updates[given < 0 ? given + rank : given] = ctx.shape(1)[0];
  set_result(ctx, std::move(shape), updates);
}

void infer_scatter_nd(InferContext& ctx) {
  Dims shape = target_shape(ctx);
  const auto rank = std::ssize(shape);
  const Dims& indices = ctx.shape(1);
  ctx.check(!indices.empty(), "indices must have rank 1 or more");
  const int64_t batch = ctx.attrs.i("batch_dims"), most = std::min(rank, ctx.rank(1) - 1);
  ctx.check(batch >= 0 && batch <= most, "batch_dims {} is out of range [0, {}]", batch, most);
  for (int64_t i = 0; i < batch; ++i) same_extent(ctx, shape[i], indices[i], "data and indices", i);
  if (indices.back().known()) {
    const int64_t depth = indices.back().value();
    ctx.check(depth <= rank - batch,
              "the last axis of indices has {} entries, at most {} are possible", depth,
              rank - batch);
    Dims updates(indices.begin(), indices.end() - 1);
    updates.insert(updates.end(), shape.begin() + batch + depth, shape.end());
    expect_updates(ctx, updates);
  }
  ctx.set(0, std::move(shape));
}

void infer_scatter_along_axis(InferContext& ctx) {
  Dims shape = target_shape(ctx);
  const auto rank = std::ssize(shape);
  const Dims& indices = ctx.shape(1);
  const std::optional<int64_t> axis = known_int(ctx, 3, "axis");
  ctx.check(!axis || (*axis >= -rank && *axis < rank), "axis {} is out of range for rank {}",
            axis.value_or(0), rank);
  ctx.check(ctx.rank(1) == rank, "data have rank {}, indices have rank {}", rank, ctx.rank(1));
  for (int64_t i = 0; axis && i < rank; ++i) {
    const Dim &most = shape[i], &extent = indices[i];
    ctx.check(i == (*axis < 0 ? *axis + rank : *axis) || !most.known() || !extent.known() ||
                  extent.value() <= most.value(),
              "indices have the extent {} along axis {}, data only {}", extent.str(), i,
              most.str());
  }
  set_result(ctx, std::move(shape), indices);
}

}  // namespace

#define SCATTER(name, text, math)                                                        \
  OP(name)                                                                               \
      .doc(text)                                                                         \
      .formula(math)                                                                     \
      .input("updates", kEvery)                                                          \
      .input("indices", kIndex, "I", "in [-n, n) for an axis of extent n")               \
      .optional("data", kEvery, "T", "what the result starts as; absent: zeros")         \
      .output("y")                                                                       \
      .attr("shape", kNoInts, "of the result when there is no data")                     \
      .attr("mode", "set", scatter_mode_choices(),                                       \
            "how an update and what is there make the new element")                      \
      .attr("include_self", true, "what is there counts where updates come, unless set") \
      .domain(0.5, 2)

SCATTER(scatter,
        "Writes slices of updates along an axis: slice i goes to the place that indices[i] names.",
        "y[i.., indices[j], k..] = updates[i.., j, k..]")
    .mps("scatterWithUpdatesTensor:indicesTensor:shape:axis:mode:name:")
    .mps("scatterWithDataTensor:updatesTensor:indicesTensor:axis:mode:name:")
    .attr("axis", 0, "the axis that indices name places on")
    .infer(infer_scatter)
    .sample({"rows", {{2, 3}, {2}, {4, 3}}, {}, {{1, {3, -4}}}})
    .sample({"columns", {{2, 3}, {3}, {2, 5}}, {{"axis", -1}}, {{1, {4, 0, 2}}}})
    .sample({"zeros", {{2, 3}, {2}}, {{"shape", Ints{3, 3}}}, {{1, {1, 1}}}})
    .sample({"add", {{3, 2}, {3}, {2, 2}}, {{"mode", "add"}}, {{1, {1, 0, 1}}}})
    .sample({"mean", {{4, 2}, {4}, {3, 2}}, {{"mode", "mean"}}, {{1, {1, 0, 1, 1}}}})
    .sample({"mean of updates",
             {{4, 2}, {4}, {3, 2}},
             {{"mode", "mean"}, {"include_self", false}},
             {{1, {1, 0, 1, 1}}}})
    .sample({"sum of updates, middle",
             {{2, 3, 4}, {3}, {2, 2, 4}},
             {{"mode", "add"}, {"include_self", false}, {"axis", 1}},
             {{1, {1, 1, 1}}}})
    .sample({"one element of each", {{5}, {5}, {4}}, {{"mode", "add"}}, {{1, {1, 1, 3, 1, 0}}}})
    .sample({"none", {{0, 2}, {0}, {3, 2}}, {}, {{1, {}}}})
    .sample({"empty", {{2, 0}, {2}, {3, 0}}, {}, {{1, {1, 2}}}});

SCATTER(scatter_nd,
        "Writes slices of updates to the places that index tuples name: the last axis of indices "
        "holds one place for each of the axes after the first batch_dims.",
        "y[b.., indices[b.., i.., :].., k..] = updates[b.., i.., k..]")
    .mps("scatterNDWithUpdatesTensor:indicesTensor:shape:batchDimensions:mode:name:")
    .mps("scatterNDWithUpdatesTensor:indicesTensor:shape:batchDimensions:name:")
    .mps("scatterNDWithDataTensor:updatesTensor:indicesTensor:batchDimensions:mode:name:")
    .attr("batch_dims", 0, "leading axes that data, indices and updates share")
    .infer(infer_scatter_nd)
    .sample({"elements", {{3}, {3, 2}, {2, 3}}, {}, {{1, {0, 0, 1, -1, 1, 0}}}})
    .sample({"rows", {{2, 3, 2}, {2, 1}, {4, 3, 2}}, {}, {{1, {3, 0}}}})
    .sample({"collide_set", {{4}, {4, 1}, {3}}, {}, {{1, {1, 1, 0, 1}}}})
    .sample({"add", {{4}, {4, 1}, {3}}, {{"mode", "add"}}, {{1, {1, 1, 0, 1}}}})
    .sample({"sub", {{4}, {4, 1}, {3}}, {{"mode", "sub"}}, {{1, {1, 1, 0, 1}}}})
    .sample({"mul", {{4}, {4, 1}, {3}}, {{"mode", "mul"}}, {{1, {1, 1, 0, 1}}}})
    .sample({"div", {{4}, {4, 1}, {3}}, {{"mode", "div"}}, {{1, {1, 1, 0, 1}}}})
    .sample({"min", {{4}, {4, 1}, {3}}, {{"mode", "min"}}, {{1, {1, 1, 0, 1}}}})
    .sample({"max", {{4}, {4, 1}, {3}}, {{"mode", "max"}}, {{1, {1, 1, 0, 1}}}})
    .sample({"zeros", {{2, 2}, {2, 1}}, {{"shape", Ints{3, 2}}, {"mode", "add"}}, {{1, {2, 2}}}})
    .sample({"batch", {{2, 2, 2}, {2, 2, 1}, {2, 3, 2}}, {{"batch_dims", 1}}, {{1, {0, 2, 1, 0}}}})
    .sample({"whole", {{2, 3}, {0}, {2, 3}}, {}, {{1, {}}}})
    .sample({"none", {{0, 3}, {0, 1}, {2, 3}}, {}, {{1, {}}}});

SCATTER(scatter_along_axis,
        "Writes single elements along an axis: the index at each place of updates says where on "
        "the axis.",
        "y[i.., indices[i.., j, k..], k..] = updates[i.., j, k..]")
    .mps("scatterAlongAxis:withUpdatesTensor:indicesTensor:shape:mode:name:")
    .mps("scatterAlongAxisTensor:withUpdatesTensor:indicesTensor:shape:mode:name:")
    .mps("scatterAlongAxis:withDataTensor:updatesTensor:indicesTensor:mode:name:")
    .mps("scatterAlongAxisTensor:withDataTensor:updatesTensor:indicesTensor:mode:name:")
    .integer("axis", 0, "the axis that indices name places on", "A")
    .infer(infer_scatter_along_axis)
    .sample({"rows", {{2, 3}, {2, 3}, {3, 3}}, {}, {{1, {1, 0, 2, 0, -1, 1}}}})
    .sample({"columns", {{1, 2}, {1, 2}, {1, 5}}, {{"axis", 1}}, {{1, {1, 3}}}})
    .sample({"add",
             {{2, 3}, {2, 3}, {2, 2}},
             {{"axis", 1}, {"mode", "add"}},
             {{1, {1, 1, 0, 0, 0, -1}}}})
    .sample({"max",
             {{2, 3}, {2, 3}, {2, 2}},
             {{"axis", 1}, {"mode", "max"}},
             {{1, {1, 1, 0, 0, 0, -1}}}})
    .sample({"min of updates",
             {{2, 3}, {2, 3}, {2, 2}},
             {{"axis", 1}, {"mode", "min"}, {"include_self", false}},
             {{1, {1, 1, 1, 0, 0, -1}}}})
    .sample({"product of updates",
             {{3, 3}, {3, 3}, {2, 4}},
             {{"mode", "mul"}, {"include_self", false}},
             {{1, {1, 1, 0, 0, 0, -1, 1, 1, 0}}}})
    .sample({"mean of updates",
             {{3, 3}, {3, 3}, {2, 4}},
             {{"mode", "mean"}, {"include_self", false}},
             {{1, {1, 1, 0, 0, 0, -1, 1, 1, 0}}}})
    .sample({"mean",
             {{2, 3}, {2, 3}, {2, 2}},
             {{"axis", 1}, {"mode", "mean"}},
             {{1, {1, 1, 1, 0, 0, -1}}}})
    .sample({"zeros", {{2, 1}, {2, 1}}, {{"shape", Ints{2, 4}}, {"axis", -1}}, {{1, {3, 1}}}})
    .sample({"axis_input", {{1, 2}, {1, 2}, {1, 5}, {}}, {}, {{1, {1, 3}}, {3, {1}}}})
    .sample({"none", {{0, 2}, {0, 2}, {3, 2}}, {}, {{1, {}}}});

namespace {

// The three scatters differ in how an index names a place.
class Places {
 public:
  Places(GradientContext& ctx, const char* gather, const char* attr)
      : ctx_(ctx), gather_(gather), attr_{attr, ctx.attrs().i(attr)} {
    if (!ctx.has(3)) return;
    const auto axis = ctx.ints(3, "shape");
    if (!axis) ctx.refuse("its axis is not known");
    attr_ = {attr, axis->at(0)};
  }
  Term read(const Term& y) { return ctx_.add(gather_, {y, ctx_.x(1)}, {attr_}); }
  Term write(const Term& updates, const Term& data, const char* mode) {
    return ctx_.add(ctx_.op().name.c_str(), {updates, ctx_.x(1), data}, {attr_, {"mode", mode}});
  }

 private:
  GradientContext& ctx_;
  const char* gather_;
  NamedAttr attr_;
};

Term numbers_like(GradientContext& ctx, const Term& like) {
  const Term all =
      ctx.add("range", {ctx.scalar(0, DType::kI64), like.op("size"), ctx.scalar(1, DType::kI64)});
  return ctx.reshape_like(all, like);
}

// Of several updates of one element, the last one counts.
void set_back(GradientContext& ctx, Places places) {
  const Term dy = ctx.dy(), numbers = numbers_like(ctx, ctx.x());
  const Term none = ctx.add("fill", {ctx.shape_of(dy), ctx.scalar(-1, DType::kI64)});
  const Term winners = places.write(numbers, none, "set");
  ctx.set(0, where(places.read(winners) == numbers, places.read(dy), 0));
  if (ctx.has(2)) ctx.set(2, where(winners == none, dy, 0));
}

// How many updates each element gets, as numbers of y's dtype.
Term counts_of(GradientContext& ctx, Places places) {
  return places.write(ctx.fill_like(ctx.x(), 1), ctx.fill_like(ctx.y(), 0), "add");
}

// dy where data counts: everywhere, or where no update comes.
Term own_part(GradientContext& ctx, Places places, const Term& dy) {
  return ctx.attrs().b("include_self") ? dy : where(counts_of(ctx, places) == 0.0, dy, 0);
}

// The gradient is shared by all that are equal to the extremum.
void extremum_back(GradientContext& ctx, Places places) {
  const Term y = ctx.y(), data = ctx.has(2) ? ctx.x(2) : ctx.fill_like(y, 0);
  const auto number = [&](const Term& equal) { return equal.op("cast", {{"dtype", y.dtype()}}); };
  const Term here = number(ctx.x() == places.read(y));
  const Term there = own_part(ctx, places, number(data == y));
  const Term share = ctx.dy() / places.write(here, there, "add");
  ctx.set(0, here * places.read(share));
  if (ctx.has(2)) ctx.set(2, there * share);
}

void mean_back(GradientContext& ctx, Places places) {
  const Term counts = counts_of(ctx, places), dy = ctx.dy();
  const bool self = ctx.attrs().b("include_self");
  const Term share = dy / (self ? counts + 1 : where(counts == 0.0, 1, counts));
  ctx.set(0, places.read(share));
  if (ctx.has(2)) ctx.set(2, self ? share : where(counts == 0.0, dy, 0));
}

// The product of the other factors, which is not y over the factor where that is 0.
void product_back(GradientContext& ctx, Places places) {
  const Term updates = ctx.x(), dy = ctx.dy();
  const Term data = ctx.has(2) ? ctx.x(2) : ctx.fill_like(ctx.y(), 0);
  const auto filled = [](const Term& x) { return where(x == 0.0, 1, x); };
  const auto zeros = [](const Term& x) { return (x == 0.0).op("cast", {{"dtype", x.dtype()}}); };
  const bool self = ctx.attrs().b("include_self");
  const Term product =
      places.write(filled(updates), self ? filled(data) : ctx.fill_like(data, 1), "mul");
  const Term missing =
      places.write(zeros(updates), self ? zeros(data) : ctx.fill_like(data, 0), "add");
  const auto others = [](const Term& x, const Term& all, const Term& none) {
    return conjugated(where(x == 0.0, where(none == 1.0, all, 0),
                            where(none == 0.0, all / where(x == 0.0, 1, x), 0)));
  };
  ctx.set(0, places.read(dy) * others(updates, places.read(product), places.read(missing)));
  if (!ctx.has(2)) return;
  ctx.set(2, self ? dy * others(data, product, missing) : own_part(ctx, places, dy));
}

void scatter_back(GradientContext& ctx, Places places) {
  const std::string& mode = ctx.attrs().s("mode");
  if (mode == "set") return set_back(ctx, places);
  if (mode == "min" || mode == "max") return extremum_back(ctx, places);
  if (mode == "mean") return mean_back(ctx, places);
  if (mode == "mul") return product_back(ctx, places);
  const Term dy = ctx.dy();
  if (mode == "add" || mode == "sub") {
    const Term read = places.read(dy);
    ctx.set(0, mode == "add" ? read : -read);
    if (ctx.has(2)) ctx.set(2, own_part(ctx, places, dy));
    return;
  }
  // y is data over the product of its updates, none of which may be 0.
  const Term updates = conjugated(ctx.x());
  const Term factors = places.write(updates, ctx.fill_like(ctx.y(), 1), "mul");
  ctx.set(0, -(places.read(dy * conjugated(ctx.y())) / updates));
  if (ctx.has(2)) ctx.set(2, dy / factors);
}

}  // namespace

COMPLEX_GRADIENT(scatter) { scatter_back(ctx, Places(ctx, "gather", "axis")); }
COMPLEX_GRADIENT(scatter_nd) { scatter_back(ctx, Places(ctx, "gather_nd", "batch_dims")); }
COMPLEX_GRADIENT(scatter_along_axis) {
  scatter_back(ctx, Places(ctx, "gather_along_axis", "axis"));
}

}  // namespace anymps
