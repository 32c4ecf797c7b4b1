// SPDX-License-Identifier: Apache-2.0
// Gradients of for_loop and while_loop: they are written as `loop`, which has a rule.
#include "graph/copy_body.h"
#include "graph/gradient_walk.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;

Term one_number(const Term& value) {
  return value.op("cast", {{"dtype", DType::kI64}}).op("reshape", {{"shape", Ints{}}});
}

std::vector<Value*> part(const std::vector<Value*>& list, size_t first, size_t count) {
  const auto begin = list.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

void append(std::vector<Value*>& list, const std::vector<Value*>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

Value* truth(Graph& graph, Value* number) {
  return number->dtype() == DType::kBool ? number
                                         : graph.add("cast", {number}, {{"dtype", DType::kBool}});
}

}  // namespace

// A loop over ceil((upper - lower) / step) rounds, whose body makes the index.
COMPLEX_GRADIENT(for_loop) {
  const Graph& body = *ctx.attrs().graph("body");
  const size_t carried = ctx.attrs().i("carried");
  const Term lower = one_number(ctx.x(0)), upper = one_number(ctx.x(1)),
             step = one_number(ctx.x(2));
  const Term below = ctx.add("div", {lower - upper, step}, {{"rounding", "floor"}});
  const Term trips = ctx.add("max", {-below, ctx.scalar(0, DType::kI64)});

  auto round = std::make_shared<Graph>();
  const ValueType number{DType::kI64, true, {}, std::nullopt};
  Value* i = round->input("i", number);
  Value* go = round->input("go", {DType::kBool, true, {}, std::nullopt});
  std::vector<Value*> inputs{nullptr};
  std::vector<Term> feeds{trips, Term()};
  for (size_t k = 3; k < ctx.input_count(); ++k) {
    inputs.push_back(round->input(fmt::format("in{}", k), body.inputs()[k - 2]->type));
    feeds.push_back(ctx.x(k));
  }
  Value *first = round->input("lower", number), *each = round->input("step", number);
  feeds.push_back(lower);
  feeds.push_back(step);
  inputs[0] = round->add("cast", {round->add("add", {first, round->add("mul", {i, each})})},
                         {{"dtype", ctx.x(0).dtype()}});
  std::vector<Value*> outputs{go};
  append(outputs, copy_body(*round, body, inputs));
  round->set_outputs(outputs);
  ctx.through(ctx.add_all(
      "loop", feeds,
      {{"body", AttrValue(std::move(round))}, {"carried", static_cast<int64_t>(carried)}},
      carried));
}

// `before` once, then a loop of `after` and `before` that carries the results.
COMPLEX_GRADIENT(while_loop) {
  const Graph &before = *ctx.attrs().graph("before"), &after = *ctx.attrs().graph("after");
  const size_t carried = ctx.attrs().i("carried");
  const size_t results = ctx.output_count(), captures = ctx.input_count() - carried;
  if (has_effects(before) || has_effects(after))
    ctx.refuse("its bodies have effects, and would run twice");
  std::vector<Value*> start;
  for (size_t k = 0; k < ctx.input_count(); ++k) start.push_back(ctx.x(k).value());
  const std::vector<Value*> first = copy_body(GraphGradientBuilder::graph_of(ctx), before, start);

  auto round = std::make_shared<Graph>();
  round->input("i", {DType::kI64, true, {}, std::nullopt});
  round->input("go", {DType::kBool, true, {}, std::nullopt});
  std::vector<Value*> feeds;
  for (size_t k = 0; k < results + captures; ++k)
    feeds.push_back(round->input(fmt::format("in{}", k), after.inputs()[k]->type));
  std::vector<Value*> again = copy_body(*round, after, feeds);
  append(again, part(feeds, results, captures));
  std::vector<Value*> outputs = copy_body(*round, before, again);
  outputs[0] = truth(*round, outputs[0]);
  round->set_outputs(outputs);

  std::vector<Term> inputs{Term(),
                           Term(&ctx, truth(GraphGradientBuilder::graph_of(ctx), first[0]))};
  for (size_t k = 0; k < results; ++k) inputs.emplace_back(&ctx, first[k + 1]);
  for (size_t k = 0; k < captures; ++k) inputs.push_back(ctx.x(carried + k));
  ctx.through(ctx.add_all(
      "loop", inputs,
      {{"body", AttrValue(std::move(round))}, {"carried", static_cast<int64_t>(results)}},
      results));
}

}  // namespace anymps
