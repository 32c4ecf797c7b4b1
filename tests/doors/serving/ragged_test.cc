// SPDX-License-Identifier: Apache-2.0
// Requests of different lengths in one run: what the model sees of them, and how results are cut.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fake_request.h"

namespace anymps::serving {
namespace {

using nlohmann::json;
using Integers = std::vector<int32_t>;

struct Kind {
  const char* kind;
  int rank;
  std::vector<int64_t> shape;
  Integers values;
};

// Gives the batch input back as an output without a batch axis, cut like nothing: whole in each
// answer, so the model is asked with one more request than is needed.
TEST(Ragged, BatchInputsTellAboutTheRequests) {
  const Kind kinds[] = {
      {"BATCH_ELEMENT_COUNT", 1, {2}, {3, 8}},
      {"BATCH_ACCUMULATED_ELEMENT_COUNT", 1, {2}, {3, 11}},
      {"BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", 1, {3}, {0, 3, 11}},
      {"BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", 1, {8}, {0, 0, 0, 0, 0, 0, 0, 0}},
      {"BATCH_ITEM_SHAPE", 2, {3, 1}, {3, 4, 4}},
      {"BATCH_ITEM_SHAPE_FLATTEN", 1, {3}, {3, 4, 4}},
  };
  for (const Kind& kind : kinds) {
    Folder folder;
    amps::Graph graph;  // the sum of what the batch input says, for every element
    const amps::Value x = graph.input("x", amps::DType::f32, {-1}, {"T"});
    const amps::Value b = graph.input("b", amps::DType::i32,
                                      std::vector<int64_t>(static_cast<size_t>(kind.rank), -1));
    const amps::Value flat = graph.op("reshape", {b}, {{"shape", std::vector<int64_t>{-1}}})[0];
    const amps::Value as_float = graph.op("cast", {flat}, {{"dtype", amps::DType::f32}})[0];
    const amps::Value sum = graph.op("reduce_sum", {as_float},
                                     {{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}})[0];
    graph.outputs({graph.op("add", {x, sum}, {}, "y")[0]});
    json in = tensor("x", "TYPE_FP32", {-1});
    in["allow_ragged_batch"] = true;
    const json config = {{"name", "m"},
                         {"max_batch_size", 8},
                         {"input", {in}},
                         {"output", {tensor("y", "TYPE_FP32", {-1})}},
                         {"batch_input",
                          {{{"kind", kind.kind},
                            {"target_name", {"b"}},
                            {"data_type", "TYPE_INT32"},
                            {"source_input", {"x"}}}}},
                         {"batch_output", {{{"target_name", {"y"}}, {"source_input", {"x"}}}}}};
    graph.save((folder.version() / "model.mps").string());
    auto model = Model::load(folder.version(), config, true);
    FakeRequest a, c;
    a.floats("x", {1, 3}, {100, 200, 300});
    c.floats("x", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
    EXPECT_EQ(execute(*model, a, c).batch_size, 3u) << kind.kind;
    float total = 0;
    for (const int32_t value : kind.values) total += static_cast<float>(value);
    EXPECT_EQ(a.values<float>("y"), (Floats{100 + total, 200 + total, 300 + total})) << kind.kind;
    EXPECT_EQ(a.shape("y"), (std::vector<int64_t>{1, 3})) << kind.kind;
    EXPECT_EQ(c.shape("y"), (std::vector<int64_t>{2, 4})) << kind.kind;
    EXPECT_EQ(c.values<float>("y").at(7), 8 + total) << kind.kind;
  }
}

TEST(Ragged, KeepsTheAxesThatRequestsShare) {
  Folder folder;
  amps::Graph graph;
  const amps::Value x = graph.input("x", amps::DType::f32, {-1, 2}, {"T", ""});
  graph.outputs({graph.op("neg", {x}, {}, "y")[0]});
  json in = tensor("x", "TYPE_FP32", {-1, 2});
  in["allow_ragged_batch"] = true;
  graph.save((folder.version() / "model.mps").string());
  auto model = Model::load(folder.version(),
                           {{"name", "m"},
                            {"max_batch_size", 8},
                            {"input", {in}},
                            {"output", {tensor("y", "TYPE_FP32", {-1, 2})}},
                            {"batch_output", {{{"target_name", {"y"}}, {"source_input", {"x"}}}}}},
                           true);
  FakeRequest a, b;
  a.floats("x", {1, 1, 2}, {1, 2});
  b.floats("x", {1, 2, 2}, {3, 4, 5, 6});
  execute(*model, a, b);
  EXPECT_EQ(a.values<float>("y"), (Floats{-1, -2}));
  EXPECT_EQ(b.values<float>("y"), (Floats{-3, -4, -5, -6}));
  EXPECT_EQ(b.shape("y"), (std::vector<int64_t>{1, 2, 2}));
}

}  // namespace
}  // namespace anymps::serving
