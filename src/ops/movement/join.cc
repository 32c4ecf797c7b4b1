// SPDX-License-Identifier: Apache-2.0
// Ops that put tensors side by side: concat, stack, tile.
#include <algorithm>

#include "ops/shape_rules.h"

namespace anymps {

namespace {

// The content of tensors joined along `axis`: of each, a block for every place before the axis.
void join_content(InferContext& ctx, int64_t axis, const Dims& shape) {
  Dims joined;
  size_t elements = 0;
  int64_t outer = 1;
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.content(i) || !ctx.type(i).static_shape()) return;
    elements += ctx.content(i)->size();
  }
  if (elements == 0) return ctx.set_content(0, {});
  for (int64_t i = 0; i < axis; ++i) outer *= shape[i].value();
  for (int64_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < ctx.input_count(); ++i) {
      const Dims& content = *ctx.content(i);
      const int64_t block = std::ssize(content) / outer;
      joined.insert(joined.end(), content.begin() + o * block, content.begin() + (o + 1) * block);
    }
  }
  ctx.set_content(0, std::move(joined));
}

void infer_concat(InferContext& ctx) {
  const size_t axis = ctx.axis("axis", 0);
  const Dims shape = common_shape(ctx, axis);
  ctx.set(0, shape);
  join_content(ctx, static_cast<int64_t>(axis), shape);
}

void infer_stack(InferContext& ctx) {
  const int64_t rank = ctx.rank(0) + 1, given = ctx.attrs.i("axis");
  ctx.check(given >= -rank && given < rank, "axis {} is out of range for rank {}", given, rank);
  const int64_t axis = given < 0 ? given + rank : given;
  Dims shape = common_shape(ctx);
  shape.insert(shape.begin() + axis, static_cast<int64_t>(ctx.input_count()));
  ctx.set(0, shape);
  join_content(ctx, axis, shape);
}

void infer_tile(InferContext& ctx) {
  const Dims& input = ctx.shape(0);
  std::optional<Dims> repeats = ctx.ints(1, "repeats");
  Dims shape = input;
  if (!repeats) {
    for (size_t i = 0; i < shape.size(); ++i) shape[i] = ctx.fresh(std::to_string(i));
    return ctx.set(0, std::move(shape));
  }
  ctx.check(repeats->size() == input.size(), "{} repeats for an input of rank {}", repeats->size(),
            input.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    const Dim& count = (*repeats)[i];
    ctx.check(!count.known() || count.value() >= 0, "repeats {} has a negative count",
              to_string(*repeats));
    shape[i] = ordered_product({shape[i], count});
  }
  ctx.set(0, shape);
  const Dims* content = ctx.content(0);
  if (!content || shape.size() > 1 || !all_known(shape) || !ctx.type(0).static_shape()) return;
  const int64_t count = element_count(to_shape(shape));
  if (count > ValueType::kMaxContent) return;
  Dims repeated;
  for (int64_t i = 0; i < count; ++i)
    repeated.push_back((*content)[static_cast<size_t>(i) % content->size()]);
  ctx.set_content(0, std::move(repeated));
}

}  // namespace

OP(concat)
    .doc("Joins tensors along an axis that they have.")
    .formula("y = xs[0], xs[1], ... one after the other along axis")
    .mps("concatTensor:withTensor:dimension:name:")
    .mps("concatTensors:dimension:name:")
    .variadic("xs", kEvery)
    .output("y")
    .attr("axis", 0, "the axis to join along")
    .facts(kMoves)
    .layout(LayoutRule::kJoin)
    .infer(infer_concat)
    .sample({"rows", {{2, 3}, {1, 3}, {3, 3}}, {}})
    .sample({"last", {{2, 1, 2}, {2, 1, 3}}, {{"axis", -1}}})
    .sample({"middle", {{2, 2, 3}, {2, 1, 3}}, {{"axis", 1}}})
    .sample({"one", {{2, 2}}, {}})
    .sample({"with_empty", {{2, 0}, {2, 2}}, {{"axis", 1}}})
    .sample({"empty", {{0, 2}, {0, 3}}, {{"axis", 1}}});

OP(stack)
    .doc("Joins tensors of one shape along a new axis.")
    .formula("y[.., k, ..] = xs[k][.., ..]")
    .mps("stackTensors:axis:name:")
    .variadic("xs", kEvery)
    .output("y")
    .attr("axis", 0, "place of the new axis in the output")
    .facts(kMoves)
    .infer(infer_stack)
    .sample({"front", {{2, 3}, {2, 3}}, {}})
    .sample({"last", {{2, 3}, {2, 3}, {2, 3}}, {{"axis", -1}}})
    .sample({"middle", {{2, 3}, {2, 3}}, {{"axis", 1}}})
    .sample({"scalars", {{}, {}, {}}, {}})
    .sample({"empty", {{0, 2}, {0, 2}}, {{"axis", 1}}});

OP(tile)
    .doc("Repeats the whole tensor along each axis.")
    .formula("y[i] = x[i mod n] along each axis")
    .mps("tileTensor:withMultiplier:name:")
    .input("x", kEvery)
    .ints("repeats", "how many times, for each axis")
    .output("y")
    .facts(kMoves)
    .infer(infer_tile)
    .sample({"matrix", {{2, 3}}, {{"repeats", Ints{2, 2}}}})
    .sample({"input", {{1, 3, 2}, {3}}, {}, {{1, {3, 1, 2}}}})
    .sample({"scalar", {{}}, {}})
    .sample({"to_nothing", {{2, 3}}, {{"repeats", Ints{0, 2}}}})
    .sample({"empty", {{0, 2}}, {{"repeats", Ints{3, 2}}}});

}  // namespace anymps
