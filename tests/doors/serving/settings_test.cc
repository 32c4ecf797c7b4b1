// SPDX-License-Identifier: Apache-2.0
// What a configuration may say, and how what it may not say is refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fake_request.h"

namespace anymps::serving {
namespace {

using nlohmann::json;

std::string settings_refusal(const json& config) {
  try {
    read_settings(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

json with(const std::string& key, const std::string& value) {
  return {{"name", "m"}, {"parameters", {{key, {{"string_value", value}}}}}};
}

TEST(Settings, ReadsTheWholeConfiguration) {
  const Settings settings = read_settings(json::parse(R"({
    "name": "m", "max_batch_size": 8,
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": ["3", -1], "optional": true},
              {"name": "s", "data_type": "TYPE_STRING", "dims": [1], "reshape": {"shape": []}},
              {"name": "r", "data_type": "TYPE_INT8", "dims": [-1], "allow_ragged_batch": true}],
    "output": [{"name": "y", "data_type": "TYPE_BF16", "dims": [4]}],
    "batch_input": [{"kind": "BATCH_ITEM_SHAPE", "target_name": ["i"], "data_type": "TYPE_INT32",
                     "source_input": ["r"]}],
    "batch_output": [{"target_name": ["y"], "source_input": ["r"]}],
    "sequence_batching": {
      "control_input": [
        {"name": "START", "control": [{"kind": "CONTROL_SEQUENCE_START", "fp32_false_true": [0, 1]}]},
        {"name": "ID", "control": [{"kind": "CONTROL_SEQUENCE_CORRID", "data_type": "TYPE_UINT64"}]}],
      "state": [{"input_name": "h", "output_name": "h2", "data_type": "TYPE_FP16", "dims": [5]}]},
    "default_model_filename": "net.onnx",
    "model_operations": {"op_library_filename": ["libx.so"]},
    "parameters": {"optimization_level": {"string_value": "0"}, "threads": {"string_value": "3"},
                   "profile": {"string_value": "True"}, "cache_dir": {"string_value": "/c"},
                   "graph_cache": {"string_value": "7"}, "device": {"string_value": "reference"},
                   "precision": {"string_value": "fp32"}, "other": {"string_value": "x"}}})"));
  EXPECT_EQ(settings.name, "m");
  EXPECT_EQ(settings.max_batch_size, 8);
  ASSERT_EQ(settings.inputs.size(), 6u);
  EXPECT_EQ(settings.inputs[0].dims, (std::vector<int64_t>{3, -1}));
  EXPECT_TRUE(settings.inputs[0].optional && !settings.inputs[0].reshape);
  EXPECT_EQ(settings.inputs[1].dtype, AMPS_STRING);
  EXPECT_EQ(settings.inputs[1].reshape, std::vector<int64_t>{});
  EXPECT_TRUE(settings.inputs[2].ragged);
  EXPECT_EQ(settings.inputs[3].name, "START");
  EXPECT_TRUE(settings.inputs[3].internal && settings.inputs[3].dtype == AMPS_F32);
  EXPECT_EQ(settings.inputs[4].dtype, AMPS_U64);
  EXPECT_EQ(settings.inputs[5].name, "h");
  ASSERT_EQ(settings.outputs.size(), 2u);
  EXPECT_EQ(settings.outputs[0].dtype, AMPS_BF16);
  EXPECT_EQ(settings.outputs[1].name, "h2");
  EXPECT_EQ(settings.batch_inputs.at(0).kind, "BATCH_ITEM_SHAPE");
  EXPECT_EQ(settings.batch_outputs.at(0).sources, std::vector<std::string>{"r"});
  EXPECT_EQ(settings.model_filename, "net.onnx");
  EXPECT_EQ(settings.op_libraries, std::vector<std::string>{"libx.so"});
  EXPECT_EQ(settings.optimization_level, 0);
  EXPECT_EQ(settings.threads, 3);
  EXPECT_TRUE(settings.profile);
  EXPECT_EQ(settings.cache_dir, "/c");
  EXPECT_EQ(settings.graph_cache, 7u);
  EXPECT_EQ(settings.device, "reference");
}

TEST(Settings, DefaultsAreThoseOfTheOriginal) {
  const Settings settings = read_settings({{"name", "m"}});
  EXPECT_EQ(settings.optimization_level, 1);
  EXPECT_EQ(settings.threads, 0);
  EXPECT_FALSE(settings.profile);
  EXPECT_EQ(read_settings({{"optimization", {{"graph", {{"level", -1}}}}}}).optimization_level, 0);
}

TEST(Settings, RefusesWithTheNameOfTheField) {
  const struct {
    json config;
    const char* says;
  } cases[] = {
      {with("optimization_level", "2"), "parameter 'optimization_level' must be a number in 0..1"},
      {with("threads", "many"), "parameter 'threads' must be a number"},
      {with("threads", "-1"), "parameter 'threads'"},
      {with("profile", "maybe"), "parameter 'profile' must be true or false"},
      {with("graph_cache", "1e9"), "parameter 'graph_cache'"},
      {with("device", "mars"), "there is no device 'mars', only "},
      {with("precision", "fp8"), "parameter 'precision' must be fp32, fp16 or bf16"},
      {{{"name", "m"}, {"max_batch_size", -1}}, "model 'm': field 'max_batch_size'"},
      {{{"name", 3}}, "field 'name' must be text"},
      {{{"name", "m"}, {"input", 3}}, "field 'input' must be a list"},
      {{{"name", "m"}, {"input", {{{"name", "x"}, {"data_type", "FP32"}, {"dims", {1}}}}}},
       "input 'x': field 'data_type': 'FP32' is no data type"},
      {{{"name", "m"}, {"input", {tensor("x", "TYPE_FP32", {0})}}},
       "input 'x': field 'dims' must hold -1 or numbers of 1 and more, 0 given"},
      {{{"name", "m"}, {"input", {tensor("x", "TYPE_FP32", {1}), tensor("x", "TYPE_FP32", {1})}}},
       "input 'x' is there twice"},
      {{{"name", "m"}, {"input", {tensor("", "TYPE_FP32", {1})}}}, "field 'name' is empty"},
      {{{"name", "m"},
        {"input",
         {{{"name", "x"},
           {"data_type", "TYPE_FP32"},
           {"dims", {4}},
           {"reshape", {{"shape", {3}}}}}}}},
       "has not as many elements as the dims [4]"},
      {{{"name", "m"},
        {"input",
         {{{"name", "x"},
           {"data_type", "TYPE_FP32"},
           {"dims", {-1}},
           {"allow_ragged_batch", true}}}}},
       "'allow_ragged_batch' needs a max_batch_size"},
      {{{"name", "m"},
        {"batch_input",
         {{{"kind", "BATCH_ELEMENT_COUNT"},
           {"target_name", {"n"}},
           {"data_type", "TYPE_INT32"},
           {"source_input", {"nobody"}}}}}},
       "there is no input 'nobody'"},
      {{{"name", "m"}, {"batch_input", {{{"kind", "OTHER"}}}}}, "field 'kind': 'OTHER'"},
  };
  for (const auto& [config, says] : cases)
    EXPECT_NE(settings_refusal(config).find(says), std::string::npos)
        << settings_refusal(config) << "\n  should say: " << says;
}

TEST(Settings, OperatorOptionsCountWhereAConfigurationIsSilent) {
  OperatorOptions options;
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"threads", "2"}, {"precision", "fp16"}, {"default-max-batch-size", "7"}})
    EXPECT_TRUE(options.set(key, value)) << key;
  EXPECT_EQ(options.default_max_batch_size, 7);
  const Settings settings = read_settings(
      json::parse(R"({"name": "m", "parameters": {"threads": {"string_value": "3"}}})"), options);
  EXPECT_EQ(settings.threads, 3);
  EXPECT_EQ(settings.precision, "fp16");
  EXPECT_FALSE(options.set("thread", "2"));
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"threads", "x"},
                                          {"precision", "fp8"},
                                          {"device", "moon"},
                                          {"default-max-batch-size", "-1"},
                                          {"op_library_directory", ""}})
    EXPECT_THROW(options.set(key, value), Error) << key;
}

}  // namespace
}  // namespace anymps::serving
