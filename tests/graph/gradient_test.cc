// SPDX-License-Identifier: Apache-2.0
// What gradient() makes of graphs: paths, sums, seeds, symbolic shapes and errors. The numbers of
// each op's gradient are checked by tests/op_table/gradient_test.cc.
#include "graph/gradient.h"

#include "ops/gradient.h"
#include "support/device_tensor.h"
#include "support/program.h"

namespace anymps::testing {
namespace {

using Values = std::vector<double>;

TEST(Gradient, SumsOverPaths) {
  Graph graph;
  Value* x = graph.input("x", DType::kF64, {3});
  // y = x * x + 3 x, so dy/dx = 2 x + 3
  Value* y = graph.add(
      "add", {graph.add("mul", {x, x}), graph.add("mul", {x, graph.scalar(DType::kF64, 3)})});
  graph.set_outputs(gradient(graph, y, {x}));
  verify(graph);
  EXPECT_EQ(run_graph(graph, {{DType::kF64, {3}, {1, -2, 0.5}}})[0], (Values{5, -1, 4}));
}

TEST(Gradient, OfASumOfBroadcasts) {
  Graph graph;
  Value* a = graph.input("a", DType::kF64, {2, 3});
  Value* b = graph.input("b", DType::kF64, {3});
  Value* y = graph.add("mul", {a, b});
  graph.set_outputs(gradient(graph, y, {b, a}));
  const auto results =
      run_graph(graph, {{DType::kF64, {2, 3}, {1, 2, 3, 4, 5, 6}}, {DType::kF64, {3}, {1, 0, -1}}});
  EXPECT_EQ(results[0], (Values{5, 7, 9}));
  EXPECT_EQ(results[1], (Values{1, 0, -1, 1, 0, -1}));
}

TEST(Gradient, TakesASeed) {
  Graph graph;
  Value* x = graph.input("x", DType::kF64, {2});
  Value* seed = graph.input("seed", DType::kF64, {2});
  graph.set_outputs(gradient(graph, graph.add("square", {x}), {x}, seed));
  EXPECT_EQ(run_graph(graph, {{DType::kF64, {2}, {3, 4}}, {DType::kF64, {2}, {10, -1}}})[0],
            (Values{60, -8}));
}

TEST(Gradient, OfValuesInBetweenAndOfYItself) {
  Graph graph;
  Value* x = graph.input("x", DType::kF64, {});
  Value* h = graph.add("exp", {x});
  Value* y = graph.add("square", {h});
  graph.set_outputs(gradient(graph, y, {h, x, y}));
  const auto results = run_graph(graph, {{DType::kF64, {}, {0}}});
  EXPECT_EQ(results[0], Values{2});
  EXPECT_EQ(results[1], Values{2});
  EXPECT_EQ(results[2], Values{1});
}

TEST(Gradient, IsZeroWhereYDoesNotDepend) {
  Graph graph;
  Value* x = graph.input("x", DType::kF64, {2});
  Value* other = graph.input("other", DType::kF64, {Dim::symbol("N")});
  Value* y = graph.add("exp", {x});
  Value* steps = graph.add("floor", {x});
  graph.set_outputs(gradient(graph, y, {other}));
  EXPECT_EQ(run_graph(graph, {{DType::kF64, {2}, {0, 0}}, {DType::kF64, {3}, {1, 1, 1}}})[0],
            (Values{0, 0, 0}));
  graph.set_outputs(gradient(graph, steps, {x}));
  EXPECT_EQ(run_graph(graph, {{DType::kF64, {2}, {0, 0}}, {DType::kF64, {3}, {1, 1, 1}}})[0],
            (Values{0, 0}));
  EXPECT_NE(error_of([&] {
              gradient(graph, y, {other}, nullptr, true);
            }).find("'exp' does not depend on 'other'"),
            std::string::npos);
}

TEST(Gradient, LeavesNoUnusedNodes) {
  Graph graph;
  Value* x = graph.input("x", DType::kF64, {2, 3});
  Value* w = graph.input("w", DType::kF64, {3, 4});
  Value* y = graph.add("matmul", {x, w});
  const size_t before = graph.node_count();
  graph.set_outputs(gradient(graph, y, {w}));
  const size_t after = graph.node_count();
  EXPECT_GT(after, before);
  graph.erase_dead();
  EXPECT_EQ(graph.node_count(), after - before);
}

TEST(Gradient, NamesTheNodeWithoutOne) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {4});
  Value* y = graph.add("fused_elementwise", {x},
                       {{"program", program({{"exp", {ProgramArg::input(0)}}})}}, "layer/fused");
  const std::string error = error_of([&] { gradient(graph, y, {x}); });
  EXPECT_NE(error.find("op 'fused_elementwise' has no gradient"), std::string::npos) << error;
  EXPECT_NE(error.find("layer/fused"), std::string::npos) << error;
}

TEST(Gradient, RefusesWhatIsNoFloat) {
  Graph graph;
  Value* i = graph.input("i", DType::kI64, {4});
  Value* x = graph.input("x", DType::kF32, {4});
  EXPECT_NE(error_of([&] { gradient(graph, x, {i}); }).find("x 'i' is i64[4]"), std::string::npos);
  EXPECT_NE(error_of([&] { gradient(graph, i, {x}); }).find("y 'i' is i64[4]"), std::string::npos);
  EXPECT_NE(error_of([&] { gradient(graph, nullptr, {x}); }).find("y is null"), std::string::npos);
}

// Numbers from PyTorch.
TEST(Gradient, OfAScatteredProductWithZeros) {
  Graph graph;
  Value* updates = graph.input("updates", DType::kF64, {3});
  Value* places = graph.input("places", DType::kI64, {3});
  Value* data = graph.input("data", DType::kF64, {3});
  Value* seed = graph.input("seed", DType::kF64, {3});
  Value* y = graph.add("scatter_along_axis", {updates, places, data}, {{"mode", "mul"}});
  graph.set_outputs(gradient(graph, y, {updates, data}, seed));
  const auto results = run_graph(graph, {{DType::kF64, {3}, {2, 0, 5}},
                                         {DType::kI64, {3}, {1, 0, 1}},
                                         {DType::kF64, {3}, {0, 2, 3}},
                                         {DType::kF64, {3}, {1, 2, 3}}});
  EXPECT_EQ(results[0], (Values{20, 0, 8}));
  EXPECT_EQ(results[1], (Values{0, 20, 3}));
}

TEST(Gradient, WorksOnSymbolicShapes) {
  Graph graph;
  const Dim n = Dim::symbol("N"), m = Dim::symbol("M");
  Value* x = graph.input("x", DType::kF64, {n, 3});
  Value* b = graph.input("b", DType::kF64, {m, 3});  // may broadcast: M is N or 1
  Value* w = graph.input("w", DType::kF64, {3, 2});
  Value* h = graph.add("matmul", {graph.add("mul", {x, b}), w});
  Value* y = graph.add("reduce_mean", {graph.add("tanh", {h})}, {{"keep_dims", false}});
  graph.set_outputs(gradient(graph, y, {x, b, w}));
  verify(graph);
  for (const char* driver : {"reference", "cpu"}) {
    for (const int64_t rows : {1, 2}) {
      TestTensor feeds[3] = {
          {DType::kF64, {2, 3}}, {DType::kF64, {rows, 3}}, {DType::kF64, {3, 2}}};
      for (uint64_t i = 0; i < 3; ++i) feeds[i].fill(i, -1, 1);
      const auto results = run_graph(graph, {feeds[0], feeds[1], feeds[2]}, driver);
      const Values xs = feeds[0].values(), bs = feeds[1].values(), ws = feeds[2].values();
      Values dx(6, 0), db(static_cast<size_t>(rows) * 3, 0), dw(6, 0);
      for (size_t i = 0; i < 2; ++i) {
        for (size_t o = 0; o < 2; ++o) {
          const size_t row = rows == 1 ? 0 : i;
          double sum = 0;
          for (size_t k = 0; k < 3; ++k) sum += xs[i * 3 + k] * bs[row * 3 + k] * ws[k * 2 + o];
          const double slope = (1 - std::tanh(sum) * std::tanh(sum)) / 4;
          for (size_t k = 0; k < 3; ++k) {
            dx[i * 3 + k] += slope * bs[row * 3 + k] * ws[k * 2 + o];
            db[row * 3 + k] += slope * xs[i * 3 + k] * ws[k * 2 + o];
            dw[k * 2 + o] += slope * xs[i * 3 + k] * bs[row * 3 + k];
          }
        }
      }
      const Values* expected[3] = {&dx, &db, &dw};
      for (size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(results[i].size(), expected[i]->size());
        for (size_t k = 0; k < results[i].size(); ++k)
          EXPECT_NEAR(results[i][k], (*expected[i])[k], 1e-12) << driver << " " << i;
      }
    }
  }
}

// y = flag ? x * w : exp(x), behind a call of a graph that squares.
TEST(Gradient, OfBranchesAndCalls) {
  const auto branch = [](bool product) {
    auto body = std::make_shared<Graph>();
    Value* x = body->input("x", DType::kF64, {2});
    Value* w = body->input("w", DType::kF64, {2});
    body->set_outputs({product ? body->add("mul", {x, w}) : body->add("exp", {x})});
    return body;
  };
  auto callee = std::make_shared<Graph>();
  callee->set_outputs({callee->add("square", {callee->input("a", DType::kF64, {2})})});
  Graph graph;
  Value* flag = graph.input("flag", DType::kBool, {});
  Value* x = graph.input("x", DType::kF64, {2});
  Value* w = graph.input("w", DType::kF64, {2});
  Value* h = graph
                 .add_node(get_op("if_else"), {flag, x, w},
                           {{"then_branch", AttrValue(branch(true))},
                            {"else_branch", AttrValue(branch(false))}},
                           "branch", 1)
                 ->output();
  Value* y =
      graph.add_node(get_op("call"), {h}, {{"callee", AttrValue(callee)}}, "call", 1)->output();
  graph.set_outputs(gradient(graph, y, {x, w}));
  verify(graph);
  const TestTensor at(DType::kF64, {2}, {0, 3}), weights(DType::kF64, {2}, {5, -2});
  auto results = run_graph(graph, {TestTensor(DType::kBool, {}, {1}), at, weights});
  EXPECT_EQ(results[0], (Values{0, 24}));   // 2 x w^2
  EXPECT_EQ(results[1], (Values{0, -36}));  // 2 x^2 w
  results = run_graph(graph, {TestTensor(DType::kBool, {}, {0}), at, weights});
  EXPECT_NEAR(results[0][0], 2, 1e-12);
  EXPECT_NEAR(results[0][1], 2 * std::exp(6), 1e-9);
  EXPECT_EQ(results[1], (Values{0, 0}));
}

// Of a picture x[r, c] = 10 r + c^2, sampled between (1, 1), (1, 2), (2, 1) and (2, 2).
TEST(Gradient, OfTheGridOfSamples) {
  Graph graph;
  Value* x = graph.input("x", DType::kF64, {1, 1, 4, 4});
  Value* grid = graph.input("grid", DType::kF64, {1, 1, 1, 2});
  Value* y = graph.add("grid_sample", {x, grid}, {{"normalized", false}});
  graph.set_outputs(gradient(graph, y, {x, grid}));
  TestTensor picture(DType::kF64, {1, 1, 4, 4});
  for_each_index(picture.shape(), [&](const Shape& at) {
    picture.put(at, static_cast<double>(10 * at[2] + at[3] * at[3]));
  });
  const auto results =
      run_graph(graph, {picture, TestTensor(DType::kF64, {1, 1, 1, 2}, {1.25, 1.5})});
  const Values weights{0, 0, 0, 0, 0, 0.375, 0.125, 0, 0, 0.375, 0.125, 0, 0, 0, 0, 0};
  for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(results[0][i], weights[i], 1e-12);
  EXPECT_NEAR(results[1][0], 3, 1e-12);   // along columns: 2^2 - 1^2
  EXPECT_NEAR(results[1][1], 10, 1e-12);  // along rows
}

// |F x|^2 summed is n |x|^2 (Parseval), so its gradient is 2 n x, for each of the transforms.
TEST(Gradient, OfFourierTransforms) {
  const TestTensor at = TestTensor(DType::kF32, {2, 6}).fill(3, -1, 1);
  const auto check = [&](const std::function<Value*(Graph&, Value*)>& f, double factor) {
    Graph graph;
    Value* x = graph.input("x", DType::kF32, {2, 6});
    graph.set_outputs(gradient(graph, f(graph, x), {x}));
    verify(graph);
    const Values dx = run_graph(graph, {at})[0], values = at.values();
    for (size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i], factor * values[i], 1e-4);
  };
  const auto power = [](Graph& graph, Value* y) { return graph.add("absolute_square", {y}); };
  check([&](Graph& g, Value* x) { return power(g, g.add("fft", {x})); }, 12);
  check([&](Graph& g, Value* x) { return power(g, g.add("fft", {g.add("fft", {x})})); }, 72);
  check(
      [&](Graph& g, Value* x) {
        return power(g, g.add("fft", {x}, {{"scaling", "unitary"}, {"inverse", true}}));
      },
      2);
  // There and back again is x itself.
  check(
      [](Graph& g, Value* x) {
        Value* y = g.add("hermitean_to_real_fft", {g.add("real_to_hermitean_fft", {x})},
                         {{"inverse", true}, {"scaling", "size"}});
        return g.add("square", {y});
      },
      2);
}

// d2/dx2 of sum(w * f(x)) along a direction, against differences of the first gradient.
void check_second_order(const std::function<Value*(Graph&, Value*)>& f, const Shape& shape,
                        double low = -1, double high = 1) {
  Graph graph;
  Value* x = graph.input("x", DType::kF64, to_dims(shape));
  Value* v = graph.input("v", DType::kF64, to_dims(shape));
  Value* y = f(graph, x);
  Value* weighted = graph.add("mul", {y, graph.add("cos", {y})});  // not linear in y
  Value* first = gradient(graph, weighted, {x})[0];
  Value* along = graph.add("mul", {first, v});
  Value* second = gradient(graph, along, {x})[0];
  graph.set_outputs({first, second});
  verify(graph);
  TestTensor at(DType::kF64, shape), direction(DType::kF64, shape);
  at.fill(1, low, high);
  direction.fill(2, -1, 1);
  const Values here = at.values(), v0 = direction.values();
  const Values product = run_graph(graph, {at, direction})[1];
  const double h = 1e-5;
  Values sides[2];
  for (const int side : {0, 1}) {
    Values moved = here;
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += (side ? h : -h) * v0[i];
    sides[side] = run_graph(graph, {TestTensor(DType::kF64, shape, moved), direction})[0];
  }
  for (size_t i = 0; i < product.size(); ++i)
    EXPECT_NEAR(product[i], (sides[1][i] - sides[0][i]) / (2 * h),
                1e-6 * (1 + std::abs(product[i])));
}

TEST(Gradient, SecondOrderOfElementwiseOps) {
  for (const char* op : {"exp",
                         "tanh",
                         "sigmoid",
                         "sin",
                         "gelu",
                         "silu",
                         "softplus",
                         "mish",
                         "erf",
                         "elu",
                         "log_sigmoid",
                         "hard_swish",
                         "square",
                         "atan",
                         "softmax",
                         "log_softmax",
                         "reduce_log_sum_exp",
                         "reduce_l2",
                         "layer_norm",
                         "rms_norm"}) {
    SCOPED_TRACE(op);
    check_second_order([&](Graph& graph, Value* x) { return graph.add(op, {x}); }, {3, 4});
  }
  check_second_order(
      [](Graph& graph, Value* x) {
        return graph.add("gelu", {x}, {{"approximate", "tanh"}});
      },
      {3, 4});
  for (const char* op : {"log", "sqrt", "rsqrt", "reciprocal", "log2"}) {
    SCOPED_TRACE(op);
    check_second_order([&](Graph& graph, Value* x) { return graph.add(op, {x}); }, {5}, 0.5, 2);
  }
}

// Far below zero the gradient is a small number, which no sum with 1 may swallow. The values were
// computed with 60 digits.
TEST(Gradient, OfGeluKeepsItsTail) {
  struct Row {
    double x, exact, tanh;
  };
  static constexpr Row kRows[] = {{-8, -3.979607261086796e-14, -4.7147845041068416e-20},
                                  {-7, -6.2663230314666318e-11, -2.7651173507066019e-14},
                                  {-6, -3.5468709453902015e-8, -7.7099739309536955e-10},
                                  {-5, -7.1469460017922946e-6, -1.5463619875325946e-6},
                                  {-4, -0.00050364966122642149, -0.00033512319712267076},
                                  {-3, -0.011945647204183927, -0.011584166630969726}};
  Values places;
  for (const Row& row : kRows) places.push_back(row.x);
  for (const char* driver : {"reference", "cpu"})
    for (const DType dtype : {DType::kF32, DType::kF64})
      for (const std::string approximate : {"none", "tanh"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", driver, name(dtype), approximate));
        Graph graph;
        Value* x = graph.input("x", dtype, {6});
        Value* y = graph.add("gelu", {x}, {{"approximate", approximate}});
        graph.set_outputs(gradient(graph, y, {x}));
        const Values found = run_graph(graph, {{dtype, {6}, places}}, driver)[0];
        for (size_t i = 0; i < found.size(); ++i) {
          const double expected = approximate == "none" ? kRows[i].exact : kRows[i].tanh;
          EXPECT_NEAR(found[i], expected, (dtype == DType::kF32 ? 2e-5 : 1e-12) * -expected)
              << kRows[i].x;
        }
      }
}

TEST(Gradient, SecondOrderOfMatmulAndConv) {
  check_second_order(
      [](Graph& graph, Value* x) {
        return graph.add("matmul", {x, x}, {{"transpose_b", true}});
      },
      {3, 4});
  check_second_order(
      [](Graph& graph, Value* x) {
        TestTensor w(DType::kF64, {2, 3, 2, 2});
        w.fill(3, -1, 1);
        Value* weights = graph.constant(Constant::copy(
            DType::kF64, w.shape(), {static_cast<const std::byte*>(w.ptr()), 24 * 8}));
        return graph.add(
            "conv", {x, weights},
            {{"strides", std::vector<int64_t>{2, 1}}, {"pads", std::vector<int64_t>{1, 0, 0, 1}}});
      },
      {1, 3, 4, 4});
}

}  // namespace
}  // namespace anymps::testing
