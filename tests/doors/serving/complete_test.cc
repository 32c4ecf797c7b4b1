// SPDX-License-Identifier: Apache-2.0
// What the graph tells about a configuration, and where it contradicts.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fake_request.h"

namespace anymps::serving {
namespace {

using nlohmann::json;

std::string complete_refusal(const json& config, const amps::Graph& graph) {
  try {
    complete_config(config, graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

amps::Graph two_inputs(std::vector<std::string> a, std::vector<std::string> b) {
  amps::Graph graph;
  const amps::Value x = graph.input("a", amps::DType::f32, {-1, 2}, a);
  const amps::Value y = graph.input("b", amps::DType::f32, {-1, 2}, b);
  graph.outputs({graph.op("relu", {x}, {}, "c")[0], graph.op("relu", {y}, {}, "d")[0]});
  return graph;
}

TEST(Complete, AGraphWithABatchAxisIsBatched) {
  const json config = complete_config({{"name", "m"}}, plus_one());
  EXPECT_EQ(config["max_batch_size"], 4);
  EXPECT_EQ(config["dynamic_batching"], json::object());
  EXPECT_EQ(config["backend"], "metal_mps");
  EXPECT_EQ(config["input"], json::array({tensor("x", "TYPE_FP32", {2})}));
  EXPECT_EQ(config["output"], json::array({tensor("y", "TYPE_FP32", {2})}));
  EXPECT_EQ(complete_config({{"name", "m"}}, plus_one(), 16)["max_batch_size"], 16);
  const json alone = complete_config({{"name", "m"}}, plus_one(), 0);
  EXPECT_FALSE(alone.contains("dynamic_batching"));
  EXPECT_EQ(alone["input"][0]["dims"], json({-1, 2}));
}

TEST(Complete, KeepsWhatIsThere) {
  const json given = {{"name", "m"},
                      {"backend", "other"},
                      {"max_batch_size", 1},
                      {"input", {{{"name", "x"}, {"data_type", "TYPE_INVALID"}}}}};
  const json config = complete_config(given, plus_one());
  EXPECT_EQ(config["backend"], "other");
  EXPECT_EQ(config["max_batch_size"], 1);
  EXPECT_FALSE(config.contains("dynamic_batching"));
  EXPECT_EQ(config["input"][0]["data_type"], "TYPE_FP32");
  EXPECT_EQ(config["input"][0]["dims"], json({2}));
  // Whole shapes: the configuration counts the first axis as its own.
  const json whole =
      complete_config({{"name", "m"}, {"input", {tensor("x", "TYPE_FP32", {-1, 2})}}}, plus_one());
  EXPECT_EQ(whole.value("max_batch_size", 0), 0);
  EXPECT_EQ(whole["output"][0]["dims"], json({-1, 2}));
  // With a sequence batcher there is no dynamic batcher.
  EXPECT_FALSE(complete_config({{"name", "m"}, {"sequence_batching", json::object()}}, plus_one())
                   .contains("dynamic_batching"));
}

TEST(Complete, RowsOfDifferentAxesAreNoBatch) {
  EXPECT_EQ(complete_config({}, two_inputs({"N", ""}, {"N", ""}))["max_batch_size"], 4);
  EXPECT_EQ(complete_config({}, two_inputs({}, {}))["max_batch_size"], 4);
  EXPECT_FALSE(complete_config({}, two_inputs({"N", ""}, {"M", ""})).contains("max_batch_size"));
  amps::Graph turned;
  const amps::Value x = turned.input("x", amps::DType::f32, {-1, -1}, {"N", "M"});
  turned.outputs({turned.op("transpose", {x}, {{"perm", std::vector<int64_t>{1, 0}}}, "y")[0]});
  EXPECT_FALSE(complete_config({}, turned).contains("max_batch_size"));
}

TEST(Complete, TensorsWithoutAxesAreReshaped) {
  amps::Graph graph;
  const amps::Value x = graph.input("x", amps::DType::i32, {-1}, {"N"});
  graph.outputs({graph.op("abs", {x}, {}, "y")[0]});
  const json config = complete_config({}, graph);
  EXPECT_EQ(config["input"][0]["dims"], json({1}));
  EXPECT_EQ(config["input"][0]["reshape"], json({{"shape", json::array()}}));
  EXPECT_EQ(config["output"][0]["data_type"], "TYPE_INT32");
}

TEST(Complete, RefusesContradictions) {
  const auto config = [](json input, json output, int64_t batch = 8) {
    return json{{"name", "m"}, {"max_batch_size", batch}, {"input", {input}}, {"output", {output}}};
  };
  const json x = tensor("x", "TYPE_FP32", {2}), y = tensor("y", "TYPE_FP32", {2});
  EXPECT_EQ(complete_refusal(config(x, y), plus_one()), "accepted");
  const struct {
    json config;
    const char* says;
  } cases[] = {
      {config(tensor("x", "TYPE_INT32", {2}), y),
       "model 'm', tensor 'x': the model has data-type TYPE_FP32 but the model configuration "
       "specifies TYPE_INT32"},
      {config(tensor("x", "TYPE_FP32", {3}), y),
       "the model expects 2 dimensions (shape [-1,2]) but the model configuration specifies 2 "
       "dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit "
       "tensor shape, making complete shape [-1,3])"},
      {config(x, tensor("y", "TYPE_FP32", {2, 2})), "specifies 3 dimensions"},
      {config(tensor("z", "TYPE_FP32", {2}), y),
       "unexpected inference input 'z', allowed inputs are: x"},
      {config(x, tensor("z", "TYPE_FP32", {2})),
       "unexpected inference output 'z', allowed outputs are: y"},
  };
  for (const auto& [given, says] : cases)
    EXPECT_NE(complete_refusal(given, plus_one()).find(says), std::string::npos)
        << complete_refusal(given, plus_one()) << "\n  should say: " << says;
  amps::Graph fixed;
  fixed.outputs({fixed.op("relu", {fixed.input("x", amps::DType::f32, {1, 2})}, {}, "y")[0]});
  EXPECT_NE(complete_refusal(config(x, y), fixed).find("model does not support batching"),
            std::string::npos);
  EXPECT_NE(complete_refusal({{"name", "m"}, {"input", {tensor("a", "TYPE_FP32", {2})}}},
                             two_inputs({}, {}))
                .find("'b' is not configured"),
            std::string::npos);
}

}  // namespace
}  // namespace anymps::serving
