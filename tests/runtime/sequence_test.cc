// SPDX-License-Identifier: Apache-2.0
// Lists, optionals and strings in runs: as feeds, as results, and in between.
#include <gtest/gtest.h>

#include "memory/string_constant.h"
#include "runtime/executable.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;

class Lists : public ::testing::Test {
 protected:
  Tensor floats(Shape shape, const std::vector<float>& values) {
    return device_->from_host(TensorDesc(DType::kF32, std::move(shape)), values.data());
  }
  Tensor number(int64_t value) { return device_->from_host(TensorDesc(DType::kI64, {}), &value); }
  Tensor list(std::vector<Tensor> items, Container container = Container::kSequence) {
    Tensor tensor;
    tensor.container = container;
    tensor.items = std::make_shared<const std::vector<Tensor>>(std::move(items));
    return tensor;
  }
  Tensor nothing(Container container) {
    Tensor tensor;
    tensor.container = container;
    return tensor;
  }
  template <typename T = float>
  std::vector<T> elements(const Tensor& tensor) {
    std::vector<T> values(static_cast<size_t>(tensor.desc.count()));
    device_->to_host(tensor, values.data());
    return values;
  }
  std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& feeds) {
    std::vector<Tensor> results;
    Executable(device_, graph).run(feeds, results);
    return results;
  }
  static ValueType list_type(Container container = Container::kSequence) {
    return {DType::kF32, false, {}, std::nullopt, container};
  }
  DevicePtr device_ = Device::get("cpu");
};

TEST_F(Lists, AreTakenApartAndPutTogether) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {5, 2});
  Value* two = graph.constant(Constant::of<int64_t>({}, {2}));
  Value* pieces = graph.add("split_to_sequence", {x, two});
  Value* last = graph.add("sequence_at", {pieces, graph.constant(Constant::of<int64_t>({}, {-1}))});
  Value* more = graph.add("sequence_insert", {pieces, last, graph.scalar(DType::kI64, 0)});
  Value* fewer = graph.add("sequence_erase", {more, graph.scalar(DType::kI64, 1)});
  graph.set_outputs({graph.add("concat_from_sequence", {fewer}, {{"axis", 0}}),
                     graph.add("sequence_length", {more}), more});
  auto results = run(graph, {floats({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})});
  EXPECT_EQ(results[0].desc.shape, (Shape{4, 2}));
  EXPECT_EQ(elements(results[0]), (std::vector<float>{9, 10, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(elements<int64_t>(results[1])[0], 4);
  ASSERT_EQ(results[2].items->size(), 4u);
  EXPECT_EQ(results[2].container, Container::kSequence);
  EXPECT_EQ((*results[2].items)[1].desc.shape, (Shape{2, 2}));
}

TEST_F(Lists, OfSlicesAndStacks) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2, 3});
  Value* columns = graph.add("split_to_sequence", {x}, {{"axis", 1}, {"keep_dims", false}});
  graph.set_outputs(
      {graph.add("concat_from_sequence", {columns}, {{"axis", 0}, {"new_axis", true}}),
       graph.add("split_to_sequence", {x}, {{"axis", 1}})});
  auto results = run(graph, {floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(results[0].desc.shape, (Shape{3, 2}));
  EXPECT_EQ(elements(results[0]), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ((*results[1].items)[2].desc.shape, (Shape{2, 1}));
  EXPECT_EQ(elements((*results[1].items)[2]), (std::vector<float>{3, 6}));
}

TEST_F(Lists, GoInAndComeOut) {
  Graph graph;
  Value* given = graph.input("list", list_type());
  Value* at = graph.input("at", DType::kI64, {});
  graph.set_outputs({graph.add("neg", {graph.add("sequence_at", {given, at}, {}, "pick")}), given});
  Executable executable(device_, graph);
  std::vector<Tensor> results;
  const Tensor feed = list({floats({1}, {1}), floats({2}, {2, 3})});
  executable.run({feed, number(1)}, results);
  EXPECT_EQ(elements(results[0]), (std::vector<float>{-2, -3}));
  ASSERT_EQ(results[1].items->size(), 2u);
  EXPECT_NE((*results[1].items)[0].data(), (*feed.items)[0].data());
  results.clear();
  const std::string error = error_of([&] { executable.run({feed, number(2)}, results); });
  EXPECT_EQ(error, "[sequence_at] position 2 is out of range for a list of 2 (node \"pick\")");
  EXPECT_EQ(error_of([&] {
              executable.run({floats({1}, {1}), number(0)}, results);
            }),
            "[run] input 'list' must be sequence of f32[?], f32[1] given");
  const int64_t whole = 1;
  const Tensor wrong = list({device_->from_host(TensorDesc(DType::kI64, {1}), &whole)});
  EXPECT_EQ(error_of([&] {
              executable.run({wrong, number(0)}, results);
            }),
            "[run] item 0 of input 'list' must be f32[?], i64[1] given");
}

TEST_F(Lists, ItemsHaveTheShapeThatTheTypeSays) {
  Graph graph;
  ValueType type = list_type();
  type.ranked = true;
  type.shape = {2, Dim::symbol("N")};
  graph.set_outputs({graph.add("sequence_length", {graph.input("list", type)})});
  EXPECT_EQ(elements<int64_t>(run(graph, {list({floats({2, 1}, {1, 2}), floats({2, 0}, {})})})[0]),
            std::vector<int64_t>{2});
  EXPECT_EQ(error_of([&] {
              run(graph, {list({floats({1, 2}, {1, 2})})});
            }),
            "[run] item 0 of input 'list' must be f32[2, N], f32[1, 2] given");
}

TEST_F(Lists, AreMapped) {
  Graph graph;
  Value* a = graph.input("a", list_type());
  Value* b = graph.input("b", list_type());
  Value* factor = graph.constant(Constant::of<float>({1}, {10}));
  const ValueType any{DType::kF32, false, {}, std::nullopt};
  auto body = std::make_shared<Graph>();
  Value* x = body->input("x", any);
  Value* y = body->input("y", any);
  Value* f = body->input("f", factor->type);
  body->set_outputs({body->add("mul", {body->add("add", {x, y}), f}), x});
  Node* node =
      graph.add_node(get_op("sequence_map"), {a, b, factor}, {{"body", AttrValue(body)}}, "map", 2);
  graph.set_outputs(node->outputs);
  Executable executable(device_, graph);
  std::vector<Tensor> results;
  const Tensor two = list({floats({1}, {1}), floats({2}, {2, 3})});
  executable.run({two, two}, results);
  EXPECT_EQ(elements((*results[0].items)[1]), (std::vector<float>{40, 60}));
  EXPECT_EQ(elements((*results[1].items)[0]), (std::vector<float>{1}));
  EXPECT_EQ(error_of([&] {
              executable.run({two, list({})}, results);
            }),
            "[sequence_map] the lists have 2 and 0 tensors (node \"map\")");
}

TEST_F(Lists, GrowInALoop) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* empty = graph.add("sequence_empty", {});
  auto loop = std::make_shared<Graph>();
  Value* i = loop->input("i", DType::kI64, {});
  Value* state = loop->input("list", list_type());
  Value* item = loop->add(
      "mul", {loop->input("x", x->type), loop->add("cast", {i}, {{"dtype", DType::kF32}})});
  loop->set_outputs({loop->add("sequence_insert", {state, item})});
  auto i64 = [&](int64_t value) { return graph.constant(Constant::of<int64_t>({}, {value})); };
  Node* node = graph.add_node(get_op("for_loop"), {i64(0), i64(100), i64(1), empty, x},
                              {{"body", AttrValue(loop)}, {"carried", 1}}, "grow", 1);
  graph.set_outputs(
      {graph.add("concat_from_sequence", {node->output()}, {{"axis", 0}, {"new_axis", true}}),
       node->output(), empty});
  auto results = run(graph, {floats({2}, {1, 2})});
  EXPECT_EQ(results[0].desc.shape, (Shape{100, 2}));
  EXPECT_EQ(elements(results[0])[199], 198);
  EXPECT_EQ(results[1].items->size(), 100u);
  EXPECT_EQ(results[2].items->size(), 0u);  // what was empty stays empty
}

TEST_F(Lists, OptionalsHoldSomethingOrNothing) {
  Graph graph;
  Value* given = graph.input("x", list_type(Container::kOptional));
  Value* lists = graph.input("l", list_type(Container::kOptionalSequence));
  Value* made = graph.add("optional", {graph.input("y", DType::kF32, {1})});
  Value* none = graph.add("optional", {}, {{"dtype", DType::kI32}, {"sequence", true}});
  EXPECT_EQ(none->type.container, Container::kOptionalSequence);
  graph.set_outputs(
      {graph.add("optional_has_element", {given}), graph.add("optional_has_element", {lists}),
       graph.add("optional_has_element", {}), made, none, graph.add("optional_get_element", {made}),
       graph.add("container_identity", {given})});
  const Tensor y = floats({1}, {7});
  auto results = run(graph, {list({floats({1}, {3})}, Container::kOptional),
                             nothing(Container::kOptionalSequence), y});
  EXPECT_TRUE(elements<uint8_t>(results[0]).front());
  EXPECT_FALSE(elements<uint8_t>(results[1]).front());
  EXPECT_FALSE(elements<uint8_t>(results[2]).front());
  EXPECT_EQ(elements((*results[3].items)[0])[0], 7);
  EXPECT_EQ(results[4].items, nullptr);
  EXPECT_EQ(elements(results[5])[0], 7);
  EXPECT_EQ(results[6].container, Container::kOptional);

  Graph needs;
  needs.set_outputs({needs.add("optional_get_element",
                               {needs.input("x", list_type(Container::kOptional))}, {}, "get")});
  EXPECT_EQ(error_of([&] { run(needs, {nothing(Container::kOptional)}); }),
            "[optional_get_element] the optional holds nothing (node \"get\")");
}

TEST_F(Lists, StringsOwnTheirCharacters) {
  Graph graph;
  Value* given = graph.input("s", DType::kString, {Dim::symbol("N")});
  Value* words = graph.constant(string_constant({2}, {"", "a word that is not small at all"}), "w");
  Value* both = graph.add("sequence_construct", {given, words});
  graph.set_outputs({both, words, graph.add("concat_from_sequence", {both}, {{"axis", 0}})});
  std::vector<Tensor> results;
  {
    Tensor feed = device_->empty(DType::kString, {1});
    feed.strings = std::make_shared<StringStore>();
    static_cast<Text*>(feed.data())[0] = feed.strings->add("fed, and gone when this is read");
    Executable(device_, graph).run({feed}, results);
  }
  auto text = [](const Tensor& tensor, size_t i) {
    return text_of(static_cast<const Text*>(tensor.data())[i]);
  };
  EXPECT_EQ(text((*results[0].items)[0], 0), "fed, and gone when this is read");
  EXPECT_EQ(text(results[1], 0), "");
  EXPECT_EQ(text(results[1], 1), "a word that is not small at all");
  EXPECT_EQ(results[2].desc.shape, (Shape{3}));
  EXPECT_EQ(text(results[2], 0), "fed, and gone when this is read");
}

}  // namespace
}  // namespace anymps
