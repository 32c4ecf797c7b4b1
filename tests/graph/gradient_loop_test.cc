// SPDX-License-Identifier: Apache-2.0
// Gradients of loops against central differences, on both drivers: a table of graphs with loops of
// every kind.
#include <functional>

#include "graph/gradient.h"
#include "support/device_tensor.h"
#include "support/graph_parts.h"

namespace anymps::testing {
namespace {

using Values = std::vector<double>;

const ValueType kScalar{DType::kF64, true, {}, std::nullopt};

ValueType vector_of(Dim n) { return {DType::kF64, true, {std::move(n)}, std::nullopt}; }

// A graph that is being made, its float inputs and what they are fed with.
struct Problem {
  Graph graph;
  std::vector<Value*> xs;
  std::vector<TestTensor> feeds;
  uint64_t seed = 1;

  Value* input(const char* name, const Shape& shape, double low = -1, double high = 1) {
    xs.push_back(graph.input(name, DType::kF64, to_dims(shape)));
    feeds.push_back(TestTensor(DType::kF64, shape).fill(seed++, low, high));
    return xs.back();
  }
  Value* count(int64_t n) { return graph.constant(Constant::of<int64_t>({}, {n})); }
  std::vector<Value*> node(const char* op, std::vector<Value*> inputs, const NamedAttrs& attrs,
                           size_t outputs) {
    return graph.add_node(get_op(op), std::move(inputs), attrs, op, outputs)->outputs;
  }
};

// The loss is the sum of the cosines of all outputs.
void check(Problem& problem, const std::vector<Value*>& ys) {
  Graph& graph = problem.graph;
  Value* loss = nullptr;
  for (Value* y : ys) {
    Value* sum = graph.add("reduce_sum", {graph.add("cos", {y})}, {{"keep_dims", false}});
    loss = loss ? graph.add("add", {loss, sum}) : sum;
  }
  auto forward = graph.clone();
  forward->set_outputs({forward->find_value(loss->name)});
  graph.set_outputs(gradient(graph, loss, problem.xs));
  verify(graph);
  const double h = 1e-6;
  for (size_t i = 0; i < problem.xs.size(); ++i) {
    SCOPED_TRACE(problem.xs[i]->name);
    const Values here = problem.feeds[i].values();
    const Values dx = run_graph(graph, problem.feeds, "reference")[i],
                 fast = run_graph(graph, problem.feeds, "cpu")[i];
    ASSERT_EQ(dx.size(), here.size());
    for (size_t k = 0; k < here.size(); ++k) {
      double sides[2];
      for (const int side : {0, 1}) {
        std::vector<TestTensor> feeds = problem.feeds;
        Values moved = here;
        moved[k] += side ? h : -h;
        feeds[i].set(moved);
        sides[side] = run_graph(*forward, feeds, "reference")[0][0];
      }
      const double difference = (sides[1] - sides[0]) / (2 * h);
      EXPECT_NEAR(dx[k], difference, 2e-7 * (1 + std::abs(difference))) << "element " << k;
      EXPECT_NEAR(fast[k], dx[k], 1e-10 * (1 + std::abs(dx[k])));
    }
  }
}

// h = tanh(x[t] * w + h * u); outs[t] = h * x[t]
GraphPtr recurrent_body(Dim n) {
  auto graph = std::make_shared<Graph>();
  Value* h = graph->input("h", vector_of(n));
  Value* x = graph->input("x", vector_of(n));
  Value* w = graph->input("w", vector_of(n));
  Value* u = graph->input("u", kScalar);
  Value* next = graph->add(
      "tanh", {graph->add("add", {graph->add("mul", {x, w}), graph->add("mul", {h, u})})});
  graph->set_outputs({next, graph->add("mul", {next, x})});
  return graph;
}

void scan_forward(Problem& p) {
  Value *h = p.input("h", {3}), *x = p.input("x", {4, 3}), *w = p.input("w", {3}),
        *u = p.input("u", {});
  check(p, p.node("scan", {h, x, w, u},
                  {body("body", recurrent_body(3)), {"states", 1}, {"scan_inputs", 1}}, 2));
}

void scan_of_other_axes(Problem& p) {
  Value *h = p.input("h", {3}), *x = p.input("x", {3, 5}), *w = p.input("w", {3}),
        *u = p.input("u", {});
  check(p, p.node("scan", {h, x, w, u},
                  {body("body", recurrent_body(Dim::symbol("M"))),
                   {"states", 1},
                   {"scan_inputs", 1},
                   {"input_axes", Ints{-1}},
                   {"input_reversed", Ints{1}},
                   {"output_axes", Ints{1}},
                   {"output_reversed", Ints{1}}},
                  2));
}

void scan_of_nothing(Problem& p) {
  Value *h = p.input("h", {3}), *x = p.input("x", {0, 3}), *w = p.input("w", {3}),
        *u = p.input("u", {});
  check(p, p.node("scan", {h, x, w, u},
                  {body("body", recurrent_body(3)), {"states", 1}, {"scan_inputs", 1}}, 2));
}

void scan_without_states(Problem& p) {
  auto graph = std::make_shared<Graph>();
  Value *a = graph->input("a", vector_of(2)), *b = graph->input("b", kScalar),
        *w = graph->input("w", vector_of(2));
  graph->set_outputs({graph->add("mul", {graph->add("mul", {a, b}), w}), graph->add("exp", {b})});
  Value *x = p.input("x", {3, 2}), *z = p.input("z", {3}), *w0 = p.input("w", {2});
  check(p, p.node("scan", {x, z, w0}, {body("body", graph), {"states", 0}, {"scan_inputs", 2}}, 2));
}

// One output's gradient alone: the state has none of its own in the end.
void scan_of_one_result(Problem& p) {
  Value *h = p.input("h", {3}), *x = p.input("x", {4, 3}), *w = p.input("w", {3}),
        *u = p.input("u", {});
  check(p, {p.node("scan", {h, x, w, u},
                   {body("body", recurrent_body(3)), {"states", 1}, {"scan_inputs", 1}}, 2)[1]});
}

// x = x * w * (i + 1) + x * x / 4
GraphPtr counted_body(DType index = DType::kI64) {
  auto graph = std::make_shared<Graph>();
  Value* i = graph->input("i", {index, true, {}, std::nullopt});
  Value* x = graph->input("x", vector_of(2));
  Value* w = graph->input("w", vector_of(2));
  Value* number = graph->add("cast", {i}, {{"dtype", DType::kF64}});
  Value* factor = graph->add("add", {number, graph->scalar(DType::kF64, 1)});
  Value* product = graph->add("mul", {graph->add("mul", {x, w}), factor});
  Value* square = graph->add("mul", {graph->add("mul", {x, x}), graph->scalar(DType::kF64, 0.25)});
  graph->set_outputs({graph->add("add", {product, square})});
  return graph;
}

void for_loop_of(Problem& p, int64_t lower, int64_t upper, int64_t step) {
  Value *x = p.input("x", {2}), *w = p.input("w", {2});
  check(p, p.node("for_loop", {p.count(lower), p.count(upper), p.count(step), x, w},
                  {body("body", counted_body()), {"carried", 1}}, 1));
}

void for_loop_narrow(Problem& p) {
  Value *x = p.input("x", {2}), *w = p.input("w", {2});
  const auto number = [&](int32_t n) { return p.graph.constant(Constant::of<int32_t>({1}, {n})); };
  check(p, p.node("for_loop", {number(1), number(4), number(2), x, w},
                  {body("body", counted_body(DType::kI32)), {"carried", 1}}, 1));
}

// Goes on while the sum is below 4; x = x * w + 1/2, a counter, and x squared as a scan.
GraphPtr growing_body() {
  auto graph = std::make_shared<Graph>();
  graph->input("i", kNumber);
  graph->input("go", kTruth);
  Value* count = graph->input("count", kNumber);
  Value* x = graph->input("x", vector_of(2));
  Value* w = graph->input("w", vector_of(2));  // carried, and never changed
  Value* b = graph->input("b", kScalar);       // captured
  Value* next = graph->add("add", {graph->add("mul", {x, w}), b});
  Value* sum = graph->add("reduce_sum", {next}, {{"keep_dims", false}});
  graph->set_outputs({graph->add("less", {sum, graph->scalar(DType::kF64, 4)}),
                      graph->add("add", {count, graph->scalar(DType::kI64, 1)}), next, w,
                      graph->add("square", {next})});
  return graph;
}

void loop_while_it_grows(Problem& p) {
  Value *x = p.input("x", {2}, 0.1, 0.5), *w = p.input("w", {2}, 1.1, 1.6),
        *b = p.input("b", {}, 0.2, 0.4);
  const auto results = p.node("loop", {nullptr, nullptr, p.count(0), x, w, b},
                              {body("body", growing_body()), {"carried", 3}}, 4);
  check(p, {results[1], results[2], results[3]});
}

void loop_that_never_runs(Problem& p) {
  Value *x = p.input("x", {2}, 0.1, 0.5), *w = p.input("w", {2}, 1.1, 1.6),
        *b = p.input("b", {}, 0.2, 0.4);
  const auto results = p.node("loop", {p.count(0), nullptr, p.count(0), x, w, b},
                              {body("body", growing_body()), {"carried", 3}}, 4);
  check(p, {results[1], results[2], results[3]});
}

// before: (x) -> (sum < limit, x * a); after: (r) -> sin(r) + r
void while_loop_of_two(Problem& p) {
  auto before = std::make_shared<Graph>(), after = std::make_shared<Graph>();
  Value *x = before->input("x", vector_of(2)), *a = before->input("a", vector_of(2));
  Value* r = before->add("mul", {x, a});
  Value* sum = before->add("reduce_sum", {r}, {{"keep_dims", false}});
  before->set_outputs({before->add("less", {sum, before->scalar(DType::kF64, 6)}), r});
  Value* s = after->input("r", vector_of(2));
  after->input("a", vector_of(2));
  after->set_outputs({after->add("add", {after->add("sin", {s}), s})});
  Value *x0 = p.input("x", {2}, 0.2, 0.6), *a0 = p.input("a", {2}, 1.1, 1.3);
  check(p, p.node("while_loop", {x0, a0},
                  {body("before", before), body("after", after), {"carried", 1}}, 1));
}

// A scan whose body runs a for_loop.
void nested(Problem& p) {
  auto outer = std::make_shared<Graph>();
  Value *h = outer->input("h", vector_of(2)), *x = outer->input("x", vector_of(2)),
        *w = outer->input("w", vector_of(2));
  const auto count = [&](int64_t n) { return outer->scalar(DType::kI64, static_cast<double>(n)); };
  Value* inner = outer
                     ->add_node(get_op("for_loop"), {count(0), count(3), count(1), h, w},
                                {body("body", counted_body()), {"carried", 1}}, "inner", 1)
                     ->output();
  outer->set_outputs({outer->add("tanh", {outer->add("add", {inner, x})})});
  Value *h0 = p.input("h", {2}), *xs = p.input("x", {3, 2}), *w0 = p.input("w", {2});
  check(p,
        p.node("scan", {h0, xs, w0}, {body("body", outer), {"states", 1}, {"scan_inputs", 1}}, 1));
}

// Two states that change places; one is never looked at.
void states_that_change_places(Problem& p) {
  auto graph = std::make_shared<Graph>();
  graph->input("i", kNumber);
  Value* go = graph->input("go", kTruth);
  Value *a = graph->input("a", vector_of(2)), *b = graph->input("b", vector_of(2)),
        *unused = graph->input("unused", vector_of(2));
  graph->set_outputs(
      {go, graph->add("sin", {b}), graph->add("mul", {a, b}), graph->add("mul", {unused, a})});
  Value *a0 = p.input("a", {2}), *b0 = p.input("b", {2}), *c0 = p.input("c", {2});
  check(p, {p.node("loop", {p.count(5), nullptr, a0, b0, c0}, {body("body", graph), {"carried", 3}},
                   3)[0]});
}

// A body that says nothing of its shapes, as importers make them.
void body_of_any_rank(Problem& p) {
  const ValueType any{DType::kF64, false, {}, std::nullopt};
  auto graph = std::make_shared<Graph>();
  graph->input("i", kNumber);
  Value* go = graph->input("go", kTruth);
  Value *x = graph->input("x", any), *w = graph->input("w", any), *b = graph->input("b", any);
  Value* next = graph->add("tanh", {graph->add("add", {graph->add("matmul", {x, w}), b})});
  graph->set_outputs({go, next, graph->add("softmax", {next})});
  Value *x0 = p.input("x", {2, 3}), *w0 = p.input("w", {3, 3}), *b0 = p.input("b", {3});
  const auto results =
      p.node("loop", {p.count(3), nullptr, x0, w0, b0}, {body("body", graph), {"carried", 1}}, 2);
  const auto shaped = [&](Value* value, Ints shape) {
    return p.graph.add("reshape", {value}, {{"shape", std::move(shape)}});
  };
  check(p, {shaped(results[0], {2, 3}), shaped(results[1], {3, 2, 3})});
}

// A branch in each round, taken by the round's number.
void branches(Problem& p) {
  const auto branch = [](const char* op) {
    auto graph = std::make_shared<Graph>();
    Value *x = graph->input("x", vector_of(2)), *w = graph->input("w", vector_of(2));
    graph->set_outputs({graph->add(op, {x, w})});
    return graph;
  };
  auto graph = std::make_shared<Graph>();
  Value* i = graph->input("i", kNumber);
  Value* go = graph->input("go", kTruth);
  Value *x = graph->input("x", vector_of(2)), *w = graph->input("w", vector_of(2));
  Value* odd = graph->add("mod", {i, graph->scalar(DType::kI64, 2)});
  Value* y =
      graph
          ->add_node(get_op("if_else"), {odd, x, w},
                     {body("then_branch", branch("mul")), body("else_branch", branch("add"))},
                     "choice", 1)
          ->output();
  graph->set_outputs({go, y});
  Value *x0 = p.input("x", {2}), *w0 = p.input("w", {2});
  check(p, p.node("loop", {p.count(4), nullptr, x0, w0}, {body("body", graph), {"carried", 1}}, 1));
}

struct Case {
  const char* name;
  std::function<void(Problem&)> build;
};

class LoopGradient : public ::testing::TestWithParam<Case> {};

TEST_P(LoopGradient, AgreesWithDifferences) {
  Problem problem;
  GetParam().build(problem);
}

const Case kCases[] = {
    {"scan", scan_forward},
    {"scan_of_other_axes", scan_of_other_axes},
    {"scan_of_nothing", scan_of_nothing},
    {"scan_without_states", scan_without_states},
    {"scan_of_one_result", scan_of_one_result},
    {"for_loop", [](Problem& p) { for_loop_of(p, 0, 4, 1); }},
    {"for_loop_down", [](Problem& p) { for_loop_of(p, 5, 0, -2); }},
    {"for_loop_in_steps", [](Problem& p) { for_loop_of(p, 1, 6, 2); }},
    {"for_loop_of_nothing", [](Problem& p) { for_loop_of(p, 3, 1, 1); }},
    {"for_loop_narrow", for_loop_narrow},
    {"loop_while_it_grows", loop_while_it_grows},
    {"loop_that_never_runs", loop_that_never_runs},
    {"while_loop", while_loop_of_two},
    {"nested", nested},
    {"states_that_change_places", states_that_change_places},
    {"body_of_any_rank", body_of_any_rank},
    {"branches", branches},
};
INSTANTIATE_TEST_SUITE_P(All, LoopGradient, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Differences of the first gradient of a scan against its second one.
TEST(LoopGradients, OfTheSecondOrder) {
  Problem p;
  Value *h = p.input("h", {3}), *x = p.input("x", {4, 3}), *w = p.input("w", {3}),
        *u = p.input("u", {});
  Value* y = p.node("scan", {h, x, w, u},
                    {body("body", recurrent_body(3)), {"states", 1}, {"scan_inputs", 1}}, 2)[1];
  Value* first = gradient(p.graph, p.graph.add("sin", {y}), {w})[0];
  check(p, {first});
}

TEST(LoopGradients, OfALengthThatIsAFeed) {
  Graph graph;
  Value* x = graph.input("x", DType::kF64, {Dim::symbol("T"), Dim::symbol("N")});
  Value* h = graph.input("h", DType::kF64, {Dim::symbol("N")});
  Value* w = graph.input("w", DType::kF64, {Dim::symbol("N")});
  Value* u = graph.input("u", DType::kF64, {});
  const auto results =
      graph
          .add_node(
              get_op("scan"), {h, x, w, u},
              {body("body", recurrent_body(Dim::symbol("M"))), {"states", 1}, {"scan_inputs", 1}},
              "scan", 2)
          ->outputs;
  graph.set_outputs(gradient(graph, results[0], {w}));
  verify(graph);
  const TestTensor h0(DType::kF64, {1}, {0.5}), w0(DType::kF64, {1}, {2}), u0(DType::kF64, {}, {0});
  // Without u each state follows from its x alone, so the last one is tanh(x * w).
  for (const int64_t length : {1, 3}) {
    Values xs(static_cast<size_t>(length), 0.25);
    const TestTensor x0(DType::kF64, {length, 1}, xs);
    const double slope = 1 - std::tanh(0.5) * std::tanh(0.5);
    EXPECT_NEAR(run_graph(graph, {x0, h0, w0, u0}, "cpu")[0][0], 0.25 * slope, 1e-12) << length;
  }
}

TEST(LoopGradients, RefuseWhatGrowsAndLists) {
  Problem p;
  auto graph = std::make_shared<Graph>();
  graph->input("i", kNumber);
  Value* go = graph->input("go", kTruth);
  Value* x = graph->input("x", vector_of(2));
  graph->set_outputs({go, graph->add("concat", {x, x}, {{"axis", 0}})});
  const std::string wrong = error_of([&] {
    p.node("loop", {p.count(2), nullptr, p.input("x", {2})}, {body("body", graph), {"carried", 1}},
           1);
  });
  EXPECT_NE(wrong.find("gets f64[4]"), std::string::npos) << wrong;

  auto open = std::make_shared<Graph>();
  open->input("i", kNumber);
  go = open->input("go", kTruth);
  x = open->input("x", vector_of(Dim::symbol("M")));
  open->set_outputs({go, open->add("concat", {x, x}, {{"axis", 0}})});
  Value* start = p.input("start", {2});
  Value* y =
      p.node("loop", {p.count(2), nullptr, start}, {body("body", open), {"carried", 1}}, 1)[0];
  p.graph.set_outputs(gradient(p.graph, y, {start}));
  Graph& whole = p.graph;
  const std::string error = error_of([&] { run_graph(whole, p.feeds, "reference"); });
  EXPECT_NE(error.find("does not go with"), std::string::npos) << error;
}

TEST(LoopGradients, RefuseEffects) {
  Problem p;
  auto graph = std::make_shared<Graph>();
  graph->input("i", kNumber);
  Value* go = graph->input("go", kTruth);
  Value* x = graph->input("x", vector_of(2));
  Value* kept = graph->add("assign_variable", {x}, {{"variable", "v"}});
  graph->set_outputs({go, graph->add("add", {kept, x})});
  Value* start = p.input("start", {2});
  Value* y =
      p.node("loop", {p.count(2), nullptr, start}, {body("body", graph), {"carried", 1}}, 1)[0];
  const std::string error = error_of([&] { gradient(p.graph, y, {start}); });
  EXPECT_NE(error.find("its body has effects"), std::string::npos) << error;
}

}  // namespace
}  // namespace anymps::testing
