// SPDX-License-Identifier: Apache-2.0
// Configurations as files: where they are wrong, and what Triton adds to them.
#include "server/repository/config_text.h"

#include "repository/model_folder.h"
#include "server/core/message_json.h"

namespace anymps::server {
namespace {

TEST(ConfigText, NamesThePlaceOfAnError) {
  const std::pair<const char*, const char*> cases[] = {
      {"max_batch_size: 1\n  foo: 2",
       "failed to read text proto from c: 2:6: Message type \"inference.ModelConfig\" has no field "
       "named \"foo\"."},
      {"max_batch_size: \"a\"",
       "failed to read text proto from c: 1:17: Expected integer, got: \"a\""},
      {"input {", "failed to read text proto from c: 1:8: Expected identifier, got: "},
  };
  for (const auto& [text, message] : cases)
    EXPECT_EQ(refusal([&, text = text] { parse_config_text(text, "c"); }), message);
}

TEST(ConfigText, AddsTritonsDefaults) {
  inference::ModelConfig config = parse_config_text(
      "max_batch_size: 4 dynamic_batching {} instance_group [ {}, { count: 2 kind: KIND_MODEL } ]",
      "c");
  set_model_name(config, "m");
  normalize_config(config);
  inference::ModelConfig again = config;
  normalize_config(again);
  EXPECT_EQ(again.SerializeAsString(), config.SerializeAsString());
  const auto json = to_json(config, Defaults::kPrint);
  EXPECT_EQ(json["version_policy"].dump(), R"({"latest":{"num_versions":1}})");
  EXPECT_EQ(json["optimization"].dump(),
            R"({"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},)"
            R"("output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,)"
            R"("eager_batching":false})");
  EXPECT_EQ(json["dynamic_batching"]["preferred_batch_size"].dump(), "[4]");
  EXPECT_EQ(json["instance_group"][0]["name"], "m_0");
  EXPECT_EQ(json["instance_group"][0]["count"], 1);
  EXPECT_EQ(json["instance_group"][1]["kind"], "KIND_MODEL");
}

TEST(ConfigText, ChecksTensorsAndGroups) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(input { data_type: TYPE_FP32 dims: 1 })", "model input must specify 'name' for m"},
      {R"(output { name: "y" dims: 0 })",
       "model output 'y' dimension must be integer >= 1, or -1 to indicate a variable-size "
       "dimension for m"},
      {R"(input { name: "x" dims: 4 reshape { shape: [ 2, -1 ] } })",
       "model input 'x' has different number of variable-size dimensions for dims and reshape for "
       "m"},
      {R"(input { name: "x" dims: 4 reshape { shape: [ 2, 3 ] } })",
       "model input 'x' has different size for dims and reshape for m"},
      {R"(instance_group { count: 2000 })",
       "model 'm', instance_group, count: at most 1024 is possible, 2000 given"},
  };
  for (const auto& [text, message] : cases) {
    inference::ModelConfig config = parse_config_text(text, "c");
    set_model_name(config, "m");
    EXPECT_EQ(refusal([&] { check_tensors(config, false); }), message);
  }
}

// Nothing of this may take memory, threads or time first.
TEST(ConfigText, RefusesWhatAsksForTooMuch) {
  const std::string sample =
      "max_batch_size: 8 model_warmup { name: 's' batch_size: 8 inputs { key: 'x' value { "
      "data_type: TYPE_FP32 zero_data: true dims: ";
  const std::pair<std::string, std::string> cases[] = {
      {"max_batch_size: 2000000000",
       "model 'm', max_batch_size: at most 1048576 is possible, 2000000000 given"},
      {"instance_group { count: 1000000000 } instance_group { count: 2000000000 }",
       "model 'm', instance_group, count: at most 1024 is possible, 3000000000 given"},
      {"sequence_batching { oldest { max_candidate_sequences: 2000000000 } }",
       "model 'm', sequence_batching.oldest.max_candidate_sequences: at most 1048576 is possible, "
       "2000000000 given"},
      {"sequence_batching { state { input_name: 'a' data_type: TYPE_FP32 dims: 4 } "
       "state { input_name: 'b' data_type: TYPE_FP32 dims: 1099511627776 } }",
       "model 'm', sequence_batching.state[1]: at most 1073741824 is possible, 4398046511120 bytes "
       "given"},
      {"sequence_batching { state { data_type: TYPE_FP32 dims: -1 initial_state { data_type: "
       "TYPE_FP32 dims: 4000000000 zero_data: true } } }",
       "model 'm', sequence_batching.state[0]: at most 1073741824 is possible, 16000000004 bytes "
       "given"},
      {sample + "1099511627776 } } }",
       "model 'm', model_warmup[0] 's', input 'x', dims: at most 1073741824 is possible, "
       "35184372088832 bytes for 8 rows given"},
      {sample + "[ 4611686018427387904, 4611686018427387904 ] } } }",
       "model 'm', model_warmup[0] 's', input 'x', dims: the shape "
       "[4611686018427387904,4611686018427387904] is not possible"},
      {"model_warmup { name: 'a' batch_size: 1 count: 9000 } "
       "model_warmup { name: 'b' batch_size: 1 count: 1000000000 }",
       "model 'm', model_warmup[1] 'b', count: at most 10000 is possible, 1000009000 runs in all "
       "given"},
      {"input { name: 'x' data_type: TYPE_FP32 dims: [ 4611686018427387904, 4 ] }",
       "model 'm', input 'x', dims: the shape [4611686018427387904,4] is not possible"},
  };
  for (const auto& [text, message] : cases) {
    inference::ModelConfig config = parse_config_text(text, "c");
    set_model_name(config, "m");
    EXPECT_EQ(refusal([&] { check_tensors(config, false); }), message);
  }
}

}  // namespace
}  // namespace anymps::server
