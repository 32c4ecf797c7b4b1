// SPDX-License-Identifier: Apache-2.0
// Configurations as files: where they are wrong, and what Triton adds to them.
#include "server/core/config_text.h"

#include "model_folder.h"
#include "server/core/message_json.h"

namespace server {
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
       "model m asks for 2000 instances; at most 1024 are possible"},
  };
  for (const auto& [text, message] : cases) {
    inference::ModelConfig config = parse_config_text(text, "c");
    set_model_name(config, "m");
    EXPECT_EQ(refusal([&] { check_tensors(config, false); }), message);
  }
}

}  // namespace
}  // namespace server
