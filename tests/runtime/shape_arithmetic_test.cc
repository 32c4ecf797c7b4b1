// SPDX-License-Identifier: Apache-2.0
// Shapes that follow from those of the feeds by way of floats, tables and branches: such graphs
// have plans, and these give what running node by node gives.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "runtime/executable.h"
#include "support/device_tensor.h"
#include "support/graph_parts.h"
#include "support/island_driver.h"

namespace anymps {
namespace {

using testing::body;
using testing::elements;
using testing::tensor;
using Ints = std::vector<int64_t>;

const Dim kH = Dim::symbol("H"), kW = Dim::symbol("W"), kM = Dim::symbol("M");

class ShapeArithmeticOn : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    register_island_driver();
    device_ = Device::get(GetParam());
  }
  Value* cast(Value* value, DType dtype) { return graph_.add("cast", {value}, {{"dtype", dtype}}); }
  Value* f32(const std::vector<float>& values) {
    return graph_.constant(Constant::of<float>({std::ssize(values)}, values));
  }
  // The extents of axes 2 and 3.
  Value* last_two(Value* x) {
    return graph_.add("slice", {graph_.add("shape", {x})},
                      {{"starts", Ints{2}}, {"ends", Ints{4}}, {"axes", Ints{0}}});
  }
  Tensor counted(const Shape& shape) {
    std::vector<float> values(element_count(shape));
    std::iota(values.begin(), values.end(), 1.0f);
    return tensor<float>(*device_, shape, values);
  }
  // Runs as a plan, and as written without any pass; what came out, for further looks.
  std::vector<Tensor> expect_plan(const std::vector<Shape>& feeds) {
    if (!executable_) executable_ = std::make_shared<Executable>(device_, graph_);
    EXPECT_NE(executable_->plan(feeds), nullptr) << "no plan";
    std::vector<Tensor> given, results, plain;
    for (const Shape& shape : feeds) given.push_back(counted(shape));
    executable_->run(given, results);
    auto reference = Device::get("reference");
    Executable as_written(reference, graph_, {.optimization_level = 0});
    std::vector<Tensor> there;
    for (const Tensor& feed : given)
      there.push_back(tensor<float>(*reference, feed.desc.shape, elements(*device_, feed)));
    as_written.run(there, plain);
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].desc.shape, plain[i].desc.shape);
      const auto got = elements(*device_, results[i]), expected = elements(*reference, plain[i]);
      EXPECT_EQ(got.size(), expected.size());
      for (size_t k = 0; k < std::min(got.size(), expected.size()); ++k)
        EXPECT_NEAR(got[k], expected[k], 1e-4 * std::abs(expected[k]) + 1e-5) << k;
    }
    return results;
  }

  DevicePtr device_;
  Graph graph_;
  std::shared_ptr<Executable> executable_;
};

// As a model says "as large as y": sizes in floats, divided by what there is.
TEST_P(ShapeArithmeticOn, ScalesThatAreQuotientsOfExtents) {
  Value* x = graph_.input("x", DType::kF32, {1, 2, kH, kW});
  Value* y = graph_.input("y", DType::kF32, {1, 1, kM, Dim::symbol("K")});
  Value* ratio =
      graph_.add("div", {cast(last_two(y), DType::kF32), cast(last_two(x), DType::kF32)});
  Value* scales = graph_.add("concat", {f32({1, 1}), ratio}, {{"axis", 0}});
  graph_.set_outputs({graph_.add("resize", {x, nullptr, scales}, {{"mode", "linear"}})});
  EXPECT_EQ(expect_plan({{1, 2, 3, 4}, {1, 1, 6, 12}})[0].desc.shape, (Shape{1, 2, 6, 12}));
  // x is the same, the scales are not: what was prepared for others does not fit.
  EXPECT_EQ(expect_plan({{1, 2, 3, 4}, {1, 1, 3, 6}})[0].desc.shape, (Shape{1, 2, 3, 6}));
  EXPECT_EQ(expect_plan({{1, 2, 5, 4}, {1, 1, 5, 6}})[0].desc.shape, (Shape{1, 2, 5, 6}));
  EXPECT_EQ(executable_->plan_stats().size, 3u);
}

// The same extent from two ratios: the kernels must differ though all the shapes agree.
TEST_P(ShapeArithmeticOn, ScalesThatGiveTheSameExtent) {
  Value* x = graph_.input("x", DType::kF32, {1, 1, 4, 4});
  Value* y = graph_.input("y", DType::kF32, {kM});
  Value* half = graph_.add("div", {cast(graph_.add("shape", {y}), DType::kF32), f32({16})});
  Value* scales = graph_.add("concat", {f32({1, 1}), half, half}, {{"axis", 0}});
  graph_.set_outputs({graph_.add("resize", {x, nullptr, scales}, {{"mode", "linear"}})});
  const auto a = elements(*device_, expect_plan({{1, 1, 4, 4}, {8}})[0]);   // 0.5
  const auto b = elements(*device_, expect_plan({{1, 1, 4, 4}, {11}})[0]);  // 0.6875
  ASSERT_EQ(a.size(), b.size());
  EXPECT_NE(a, b);
}

TEST_P(ShapeArithmeticOn, SizesThatAreRoundedUp) {
  Value* x = graph_.input("x", DType::kF32, {1, 2, kH, kW});
  for (const char* rounding : {"ceil", "floor", "round"}) {
    Value* half = graph_.add(
        rounding,
        {graph_.add("mul", {cast(last_two(x), DType::kF32), graph_.scalar(DType::kF32, 0.7)})});
    Value* sizes =
        graph_.add("concat", {graph_.ints({1, 2}), cast(half, DType::kI64)}, {{"axis", 0}});
    graph_.set_outputs({graph_.add("resize", {x, sizes}, {{"mode", "linear"}})});
    executable_ = nullptr;
    expect_plan({{1, 2, 9, 4}});
    expect_plan({{1, 2, 4, 5}});
  }
}

// Roots, maxima, choices, sums, products, tables: whatever is computed from extents.
TEST_P(ShapeArithmeticOn, WhateverIsComputedFromExtents) {
  const std::vector<std::function<Value*(Value*)>> kWays = {
      [&](Value* n) { return cast(graph_.add("sqrt", {cast(n, DType::kF32)}), DType::kI64); },
      [&](Value* n) {
        Value* wide = graph_.add("greater", {cast(n, DType::kF32), graph_.scalar(DType::kF32, 4)});
        return graph_.add("where", {wide, n, graph_.ints({2})});
      },
      [&](Value* n) {
        Value* table = graph_.constant(Constant::of<float>({2, 6}, {1, 2, 3, 1, 2, 3,  //
                                                                    3, 2, 1, 3, 2, 1}));
        Value* column =
            graph_.add("gather", {table, graph_.add("mod", {n, graph_.ints({6})})}, {{"axis", 1}});
        return cast(graph_.add("reduce_sum", {column}, {{"axes", Ints{0}}, {"keep_dims", false}}),
                    DType::kI64);
      },
      [&](Value* n) {
        Value* range = graph_.add(
            "range", {graph_.scalar(DType::kF32, 0), graph_.add("squeeze", {cast(n, DType::kF32)}),
                      graph_.scalar(DType::kF32, 2)});
        return graph_.add("shape", {range});
      },
      [&](Value* n) {
        Value* ones = graph_.add("fill", {n, graph_.scalar(DType::kI64, 1)});
        return graph_.add("unsqueeze", {graph_.add("reduce_sum", {ones}, {{"keep_dims", false}})},
                          {{"axes", Ints{0}}});
      },
      [&](Value* n) {
        Value* mask = graph_.add("fill", {n, graph_.scalar(DType::kF32, 1)});
        return graph_.add("slice", {graph_.add("shape", {graph_.add("nonzero", {mask})})},
                          {{"starts", Ints{-1}}, {"ends", Ints{99}}, {"axes", Ints{0}}});
      },
  };
  for (size_t way = 0; way < kWays.size(); ++way) {
    SCOPED_TRACE(way);
    Value* x = graph_.input("x" + std::to_string(way), DType::kF32, {kH, 3});
    Value* n = graph_.add("slice", {graph_.add("shape", {x})},
                          {{"starts", Ints{0}}, {"ends", Ints{1}}, {"axes", Ints{0}}});
    Value* shape = graph_.add("concat", {kWays[way](n), graph_.ints({1, 3})}, {{"axis", 0}});
    Value* row = graph_.add("slice", {x}, {{"starts", Ints{0}}, {"ends", Ints{1}}});
    graph_.set_outputs({graph_.add("expand", {row, shape})});
    // The inputs of the ways before are fed, too.
    executable_ = nullptr;
    for (const int64_t extent : {4, 7}) expect_plan(std::vector<Shape>(way + 1, Shape{extent, 3}));
  }
}

TEST_P(ShapeArithmeticOn, ElementsOfAFeedGiveNoPlan) {
  Value* x = graph_.input("x", DType::kF32, {4});
  Value* n = cast(graph_.add("reduce_max", {x}), DType::kI64);
  graph_.set_outputs({graph_.add("expand", {graph_.scalar(DType::kF32, 1), n})});
  Executable executable(device_, graph_);
  EXPECT_EQ(executable.plan({{4}}), nullptr);
  std::vector<Tensor> results;
  executable.run({tensor<float>(*device_, {4}, {1, 3, 2, 0})}, results);
  EXPECT_EQ(results[0].desc.shape, (Shape{3}));
}

// Long chains are walked without recursion.
TEST_P(ShapeArithmeticOn, ALongChain) {
  Value* x = graph_.input("x", DType::kF32, {kH});
  Value* n = cast(graph_.add("shape", {x}), DType::kF32);
  for (int i = 0; i < 4000; ++i) n = graph_.add(i % 2 ? "neg" : "floor", {n});
  graph_.set_outputs({graph_.add("expand", {graph_.scalar(DType::kF32, 1), cast(n, DType::kI64)})});
  Executable executable(device_, graph_, {.optimization_level = 0});
  ASSERT_NE(executable.plan({{5}}), nullptr);
  EXPECT_EQ(executable.plan({{5}})->results()[0].shape, (Shape{5}));
}

// A branch on an extent; what it gives decides the next one.
TEST_P(ShapeArithmeticOn, BranchesOnExtents) {
  Value* x = graph_.input("x", DType::kF32, {kH, 3});
  const auto choice = [&](Value* value, Value* condition, const std::string& name) {
    auto yes = std::make_shared<Graph>(), no = std::make_shared<Graph>();
    ValueType open = value->type;
    open.ranked = false;
    open.shape = {};
    Value* a = yes->input("a", open);
    yes->set_outputs({yes->add("squeeze", {a}, {{"axes", Ints{0}}})});
    Value* b = no->input("b", open);
    no->set_outputs({no->add("neg", {b})});
    return graph_
        .add_node(get_op("if_else"), {condition, value},
                  {body("then_branch", yes), body("else_branch", no)}, name, 1)
        ->output();
  };
  const auto one = [&](Value* value) {
    Value* extent =
        graph_.add("gather", {graph_.add("shape", {value}), graph_.scalar(DType::kI64, 0)});
    return graph_.add("equal", {extent, graph_.scalar(DType::kI64, 1)});
  };
  Value* first = choice(x, one(x), "first");
  Value* size = graph_.add("size", {graph_.add("shape", {first})});
  Value* second =
      choice(first, graph_.add("equal", {size, graph_.scalar(DType::kI64, 7)}), "second");
  graph_.set_outputs({second});
  EXPECT_EQ(expect_plan({{1, 3}})[0].desc.shape, (Shape{3}));
  EXPECT_EQ(expect_plan({{2, 3}})[0].desc.shape, (Shape{2, 3}));
  EXPECT_EQ(executable_->plan_stats().size, 2u);
  // However many shapes come, each gives its result; only so many have plans.
  for (int64_t rows = 3; rows < 14; ++rows) {
    std::vector<Tensor> results;
    executable_->run({counted({rows, 3})}, results);
    EXPECT_EQ(results[0].desc.shape, (Shape{rows, 3}));
  }
}

TEST_P(ShapeArithmeticOn, ABranchOnDataHasNoPlan) {
  Value* x = graph_.input("x", DType::kF32, {2});
  Value* condition = graph_.add("greater", {graph_.add("reduce_sum", {x}, {{"keep_dims", false}}),
                                            graph_.scalar(DType::kF32, 0)});
  auto yes = std::make_shared<Graph>(), no = std::make_shared<Graph>();
  yes->set_outputs({yes->add("neg", {yes->input("a", x->type)})});
  no->set_outputs({no->add("exp", {no->input("b", x->type)})});
  graph_.set_outputs(graph_
                         .add_node(get_op("if_else"), {condition, x},
                                   {body("then_branch", yes), body("else_branch", no)}, "if", 1)
                         ->outputs);
  Executable executable(device_, graph_);
  EXPECT_EQ(executable.plan({{2}}), nullptr);
  std::vector<Tensor> results;
  executable.run({tensor<float>(*device_, {2}, {1, 2})}, results);
  EXPECT_EQ(elements(*device_, results[0]), (std::vector<float>{-1, -2}));
}

INSTANTIATE_TEST_SUITE_P(Drivers, ShapeArithmeticOn,
                         ::testing::Values("cpu", "reference", "island"));

}  // namespace
}  // namespace anymps
