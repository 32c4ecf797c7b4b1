// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct ScatterSlices : ::testing::Test {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {3, 4, kN});
  Value* tuples(Shape shape, const Ints& numbers) {
    return graph.constant(Constant::of<int64_t>(std::move(shape), numbers));
  }
  Value* update(Dims shape) { return graph.input("u", DType::kF32, std::move(shape)); }
  void scatter(Value* updates, Value* indices, Value* data, const char* mode = "set") {
    graph.set_outputs({graph.add("scatter_nd", {updates, indices, data}, {{"mode", mode}}, "y")});
  }
};

TEST_F(ScatterSlices, ABox) {
  Value* where = tuples({2, 2, 2}, {1, 0, 1, 2, 2, 0, 2, 2});
  scatter(update({2, 2, kN}), where, x);
  EXPECT_EQ(rewrite(graph, {"scatter_slices"}), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[3, 4, N] = slice_update(%x, %u) {starts=[1, 0], ends=[3, 3], axes=[0, 1], steps=[1, 2]}
)");
}

TEST_F(ScatterSlices, RowsFromTheEnd) {
  scatter(update({2, 4, kN}), tuples({2, 1}, {-2, -1}), x);
  EXPECT_EQ(rewrite(graph, {"scatter_slices"}), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[3, 4, N] = slice_update(%x, %u) {starts=[1], ends=[3], axes=[0], steps=[1]}
)");
}

TEST_F(ScatterSlices, AllOfIt) {
  Value* data = graph.input("data", DType::kF32, {2, 3});
  Value* rows = tuples({2, 3}, {0, 0, 0, 1, 1, 1});
  Value* columns = tuples({2, 3, 1}, {0, 1, 2, 0, 1, 2});
  Value* both = graph.add("concat", {graph.add("unsqueeze", {rows}, {{"axes", Ints{-1}}}), columns},
                          {{"axis", -1}});
  Value* updates = graph.add("neg", {update({2, 3})}, {}, "minus");
  scatter(updates, both, data);
  EXPECT_EQ(rewrite(graph, {"scatter_slices"}), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[2, 3] = neg(%u)
)");
}

// As exporters write it: each entry is expanded to all tuples.
TEST_F(ScatterSlices, ExpandedEntries) {
  Value* parts[2] = {tuples({2, 1}, {1, 2}), tuples({3}, {0, 1, 2})};
  for (Value*& part : parts) {
    part = graph.add("expand", {part}, {{"shape", Ints{2, 3}}});
    part = graph.add("unsqueeze", {part}, {{"axes", Ints{-1}}});
  }
  scatter(update({2, 3, kN}), graph.add("concat", {parts[0], parts[1]}, {{"axis", -1}}), x);
  EXPECT_EQ(rewrite(graph, {"scatter_slices"}), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[3, 4, N] = slice_update(%x, %u) {starts=[1, 0], ends=[3, 3], axes=[0, 1], steps=[1, 1]}
)");
}

// The entry of the second axis does not depend on the second axis.
TEST_F(ScatterSlices, ExpandedAlongTheOther) {
  Value* parts[2] = {tuples({2, 1}, {1, 2}), tuples({2, 1}, {0, 1})};
  for (Value*& part : parts) {
    part = graph.add("expand", {part}, {{"shape", Ints{2, 3}}});
    part = graph.add("unsqueeze", {part}, {{"axes", Ints{-1}}});
  }
  scatter(update({2, 3, kN}), graph.add("concat", {parts[0], parts[1]}, {{"axis", -1}}), x);
  EXPECT_EQ(rewrite(graph, {"scatter_slices"}), 0);
}

TEST_F(ScatterSlices, OtherPlacesStay) {
  for (const Ints& places : {Ints{1, 0}, Ints{1, 1}, Ints{-1, 0}}) {
    Graph& g = graph;
    scatter(g.inputs().size() > 1 ? g.inputs()[1] : update({2, 4, kN}), tuples({2, 1}, places), x);
    EXPECT_EQ(rewrite(g, {"scatter_slices"}), 0) << places[0];
  }
  // Turned: the first axis of the tuples goes along the second one of x.
  Value* where = tuples({2, 2, 2}, {0, 0, 1, 0, 0, 1, 1, 1});
  scatter(graph.input("v", DType::kF32, {2, 2, kN}), where, x);
  EXPECT_EQ(rewrite(graph, {"scatter_slices"}), 0);
}

TEST_F(ScatterSlices, SumsStay) {
  scatter(update({2, 4, kN}), tuples({2, 1}, {0, 1}), x, "add");
  EXPECT_EQ(rewrite(graph, {"scatter_slices"}), 0);
}

}  // namespace

}  // namespace anymps::testing
