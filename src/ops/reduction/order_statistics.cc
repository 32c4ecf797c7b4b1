// SPDX-License-Identifier: Apache-2.0
// One element of each line along an axis, and where it is: extrema, medians, the k-th, the most
// frequent. A NaN counts as greater than every number where nothing else is said.
#include "ops/gradient_parts.h"

namespace anymps {

namespace {

void infer_pick(InferContext& ctx) {
  const size_t axis = ctx.axis("axis", 0);
  Dims shape = ctx.shape(0);
  const Dim extent = shape[axis];
  ctx.check(!extent.is(0), "axis {} of {} is empty: it has no element to give", axis,
            to_string(shape));
  if (ctx.op.attr_index("k") >= 0) {
    const int64_t k = ctx.attrs.i("k");
    ctx.check(k >= 1 && (!extent.known() || k <= extent.value()),
              "k is {}, axis {} has the extent {}", k, axis, extent.str());
  }
  if (ctx.attrs.b("keep_dims"))
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  ctx.set(0, shape);
  ctx.set(1, shape);
}

}  // namespace

#define PICK(name, text, math)                                           \
  OP(name)                                                               \
      .doc(text)                                                         \
      .formula(math)                                                     \
      .input("x", kReal | kBoolean)                                      \
      .output("values")                                                  \
      .output("indices", "i64", "where along the axis the element is")   \
      .attr("axis", -1, "along which to look")                           \
      .attr("keep_dims", false, "the axis stays, with extent 1")         \
      .infer(infer_pick)                                                 \
      .tolerance({.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0})              \
      .sample({"vector", {{17}}, {}})                                    \
      .sample({"last", {{3, 33}}, {{"keep_dims", true}}})                \
      .sample({"middle", {{2, 9, 4}}, {{"axis", 1}}})                    \
      .sample({"first", {{12, 70}}, {{"axis", 0}, {"keep_dims", true}}}) \
      .sample({"one", {{3, 1}}, {}})                                     \
      .sample({"empty", {{0, 3}}, {}})

PICK(max_with_indices,
     "The greatest element along an axis, the first of equals; a NaN is taken first.",
     "values = max(x), indices = argmax(x)");
PICK(min_with_indices,
     "The lowest element along an axis, the first of equals; a NaN is taken first.",
     "values = min(x), indices = argmin(x)");
PICK(median,
     "The median along an axis, the lower of two. With skip_nan NaNs do not count, unless there is "
     "nothing else; otherwise the first of them is the result.",
     "values = sorted(x)[(n - 1) / 2]")
    .attr("skip_nan", false, "NaNs do not count");
PICK(kth_value, "The k-th lowest element along an axis; of equals the first is taken first.",
     "values = sorted(x)[k - 1]")
    .attr("k", 1, "counted from 1");
PICK(mode,
     "The most frequent element along an axis, the lowest of several, at its last place; NaNs are "
     "different from each other.",
     "values = the element that comes most often");

namespace {

void picked_back(GradientContext& ctx) {
  if (!ctx.dy()) return;
  const int64_t axis = axis_of(ctx);
  Term dy = ctx.dy(), places = ctx.y(1);
  if (!ctx.attrs().b("keep_dims")) {
    const NamedAttrs back = {{"axes", std::vector<int64_t>{axis}}};
    dy = dy.op("unsqueeze", back);
    places = places.op("unsqueeze", back);
  }
  ctx.set(0,
          ctx.add("scatter_along_axis", {dy, places, ctx.fill_like(ctx.x(), 0)}, {{"axis", axis}}));
}

}  // namespace

GRADIENT(max_with_indices) { picked_back(ctx); }
GRADIENT(min_with_indices) { picked_back(ctx); }
GRADIENT(median) { picked_back(ctx); }
GRADIENT(kth_value) { picked_back(ctx); }
GRADIENT(mode) { picked_back(ctx); }

}  // namespace anymps
