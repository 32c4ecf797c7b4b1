// SPDX-License-Identifier: Apache-2.0
// Gradients of tables of rows that are looked up (gather is the way there), and bags of looked-up
// rows that are reduced to one.
#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

namespace {

const char* const kPaddingDoc = "a row that takes no part; negative: none";
const std::vector<std::string> kBagModes = {"sum", "mean", "max"};

void infer_embedding_gradient(InferContext& ctx) {
  const int64_t rows = ctx.attrs.i("rows");
  ctx.check(rows >= 0, "rows is {}, must not be negative", rows);
  const Dims& dy = ctx.shape(0);
  ctx.check(!dy.empty(), "dy is a scalar, must have the axis of a row");
  expect_shape(ctx, 1, Dims(dy.begin(), dy.end() - 1));
  ctx.set(0, {rows, dy.back()});
}

Dim bags_of(const InferContext& ctx, size_t offsets) {
  expect_rank(ctx, offsets, 1, 1);
  const Dim& extent = ctx.shape(offsets)[0];
  if (!ctx.attrs.b("include_last_offset")) return extent;
  ctx.check(!extent.is(0), "offsets are empty, must have the last one");
  return extent - Dim(1);
}

// `first` is the number of the input `weight`, before indices, offsets and per_sample_weights.
void check_bags(const InferContext& ctx, size_t first) {
  expect_rank(ctx, first, 2, 2);
  expect_rank(ctx, first + 1, 1, 1);
  expect_shape(ctx, first + 3, {ctx.shape(first + 1)[0]});
  ctx.check(!ctx.has(first + 3) || ctx.attrs.s("mode") == "sum",
            "per_sample_weights are for mode sum alone");
}

void infer_embedding_bag(InferContext& ctx) {
  check_bags(ctx, 0);
  const Dims y = {bags_of(ctx, 2), ctx.shape(0)[1]};
  ctx.set(0, y);
  if (ctx.output_count() > 1) ctx.set(1, ctx.attrs.s("mode") == "max" ? y : Dims{0});
}

void infer_embedding_bag_gradient(InferContext& ctx) {
  check_bags(ctx, 1);
  const Dims y = {bags_of(ctx, 3), ctx.shape(1)[1]};
  expect_shape(ctx, 0, y);
  const bool max = ctx.attrs.s("mode") == "max";
  ctx.check(!max || ctx.has(5), "the gradient of mode max needs max_indices");
  if (max) expect_shape(ctx, 5, y);
  ctx.set(0, ctx.shape(1));
  if (ctx.output_count() > 1) ctx.set(1, ctx.has(4) ? Dims{ctx.shape(2)[0]} : Dims{0});
}

OpWriter& bag_inputs(OpWriter& op) {
  return op.input("weight", kFloat, "T", "[rows, D]")
      .input("indices", kIndex, "I", "[n], in [0, rows)")
      .input("offsets", kIndex, "O", "[bags], from 0 on, in order")
      .optional("per_sample_weights", kFloat, "T", "[n]; for sum; absent: 1");
}
OpWriter& bag_attrs(OpWriter& op) {
  return op.attr("mode", "mean", kBagModes)
      .attr("include_last_offset", false, "offsets end with the number of indices")
      .attr("padding_idx", -1, kPaddingDoc);
}

}  // namespace

OP(embedding_gradient)
    .doc("The gradient of a table whose rows were picked: each row of dy is added to its row.")
    .formula(
        "dweight[indices[i]] += dy[i], over how often the row is picked if scaled by frequency")
    .input("dy", kFloat, "T", "[…, D]")
    .input("indices", kIndex, "I", "[…], in [0, rows)")
    .output("dweight", "T", "[rows, D]")
    .required("rows", AttrKind::kInt, "of the table")
    .attr("padding_idx", -1, kPaddingDoc)
    .attr("scale_grad_by_freq", false)
    .infer(infer_embedding_gradient)
    .sample({"rows", {{4, 5}, {4}}, {{"rows", 3}}, {{1, {2, 0, 2, 2}}}})
    .sample(
        {"padding", {{2, 2, 33}, {2, 2}}, {{"rows", 4}, {"padding_idx", 1}}, {{1, {1, 3, 3, 0}}}})
    .sample({"frequency",
             {{5, 3}, {5}},
             {{"rows", 3}, {"scale_grad_by_freq", true}},
             {{1, {1, 1, 0, 1, 0}}}})
    .sample({"one", {{3}, {}}, {{"rows", 2}}, {{1, {1}}}})
    .sample({"long rows", {{3, 1100}, {3}}, {{"rows", 2}}, {{1, {1, 0, 1}}}})
    .sample({"no indices", {{0, 3}, {0}}, {{"rows", 2}}, {{1, {}}}})
    .sample({"empty rows", {{2, 0}, {2}}, {{"rows", 2}}, {{1, {1, 0}}}});

OP(embedding_bag)
    .doc(
        "Rows of a table, picked in bags that begin at the offsets, each bag reduced to one row. "
        "An empty bag gives 0. For max, the index that gave each element is an output if asked "
        "for (-1 in an empty bag); otherwise that output is empty.")
    .formula("y[b] = sum, mean or max of weight[indices[i]] * per_sample_weights[i], i of bag b")
    .with(bag_inputs)
    .output("y", "T", "[bags, D]")
    .by_product("max_indices", "i64", "[bags, D]")
    .with(bag_attrs)
    .infer(infer_embedding_bag)
    .sample({"mean", {{4, 5}, {6}, {3}}, {}, {{1, {0, 3, 1, 1, 2, 0}}, {2, {0, 2, 2}}}})
    .sample({"sum",
             {{4, 33}, {6}, {3}, {6}},
             {{"mode", "sum"}, {"include_last_offset", true}},
             {{1, {0, 3, 1, 1, 2, 0}}, {2, {0, 2, 6}}}})
    .sample({"max",
             {{4, 3}, {5}, {3}},
             {{"mode", "max"}, {"padding_idx", 1}},
             {{1, {0, 3, 1, 1, 2}}, {2, {0, 2, 4}}}})
    .sample(
        {"padding", {{4, 3}, {5}, {2}}, {{"padding_idx", 3}}, {{1, {3, 3, 1, 3, 2}}, {2, {0, 2}}}})
    .sample({"no bags", {{4, 3}, {0}, {0}}, {}, {{1, {}}, {2, {}}}});

OP(embedding_bag_gradient)
    .doc("The gradients of embedding_bag to the table and to the weights of samples.")
    .formula("dweight[indices[i]] += dy[b] * per_sample_weights[i], over the bag's size for mean")
    .input("dy", kFloat, "T", "[bags, D]")
    .with(bag_inputs)
    .optional("max_indices", bit(DType::kI64), "X", "[bags, D]; needed for max")
    .output("dweight")
    .by_product("dper_sample_weights", "T", "[n]; empty where there are none")
    .with(bag_attrs)
    .attr("scale_grad_by_freq", false)
    .infer(infer_embedding_bag_gradient)
    .sample({"mean", {{3, 5}, {4, 5}, {6}, {3}}, {}, {{2, {0, 3, 1, 1, 2, 0}}, {3, {0, 2, 2}}}})
    .sample({"sum",
             {{2, 33}, {4, 33}, {6}, {3}, {6}},
             {{"mode", "sum"}, {"include_last_offset", true}, {"padding_idx", 0}},
             {{2, {0, 3, 1, 1, 2, 0}}, {3, {0, 2, 6}}}})
    .sample({"max",
             {{3, 2}, {4, 2}, {5}, {3}, {-1}, {3, 2}},
             {{"mode", "max"}, {"padding_idx", 1}},
             {{2, {0, 3, 1, 1, 2}}, {3, {0, 2, 4}}, {5, {0, 3, -1, -1, 2, 2}}}})
    .sample({"frequency",
             {{2, 3}, {4, 3}, {5}, {2}},
             {{"scale_grad_by_freq", true}},
             {{2, {3, 3, 1, 3, 2}}, {3, {0, 2}}}})
    .sample({"no bags", {{0, 3}, {4, 3}, {0}, {0}}, {}, {{2, {}}, {3, {}}}});

GRADIENT(embedding_gradient) {
  if (ctx.attrs().b("scale_grad_by_freq"))
    ctx.refuse("rows are scaled by how often they are picked");
  const Term indices = ctx.x(1);
  Term picked = ctx.add("gather", {ctx.dy(), indices});
  if (const int64_t padding = ctx.attrs().i("padding_idx"); padding >= 0) {
    const Term out = indices == ctx.scalar(static_cast<double>(padding), indices.dtype());
    picked = where(out.op("unsqueeze", {{"axes", std::vector<int64_t>{-1}}}), 0, picked);
  }
  ctx.set(0, picked);
}

GRADIENT(embedding_bag) {
  std::vector<Term> inputs{ctx.dy(), ctx.x(0), ctx.x(1), ctx.x(2), ctx.has(3) ? ctx.x(3) : Term(),
                           Term()};
  if (ctx.attrs().s("mode") == "max")
    inputs[5] = ctx.output_count() > 1
                    ? ctx.y(1)
                    : ctx.add_all("embedding_bag", {inputs[1], inputs[2], inputs[3]},
                                  ctx.attrs().named(), 2)[1];
  const std::vector<Term> all =
      ctx.add_all("embedding_bag_gradient", inputs, ctx.attrs().named(), 2);
  ctx.set(0, all[0]);
  if (ctx.has(3)) ctx.set(3, all[1]);
}

NO_GRADIENT(embedding_bag_gradient, "a second derivative: write the bags as gather and reductions");

}  // namespace anymps
