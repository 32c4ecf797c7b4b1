// SPDX-License-Identifier: Apache-2.0
// Messages as JSON and back: the form is Triton's.
#include "server/core/message_json.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "grpc_service.pb.h"
#include "serving/error.h"

namespace anymps::server {
namespace {

inference::ModelConfig sample() {
  inference::ModelConfig config;
  config.set_name("m");
  config.set_max_batch_size(8);
  auto& input = *config.add_input();
  input.set_name("x");
  input.set_data_type(inference::TYPE_FP32);
  input.add_dims(-1);
  input.add_dims(int64_t{1} << 40);
  (*config.mutable_parameters())["threads"].set_string_value("2");
  config.mutable_dynamic_batching()->add_preferred_batch_size(4);
  auto& sequence = *config.mutable_sequence_batching();
  sequence.mutable_direct()->set_minimum_slot_utilization(0.1F);
  sequence.add_control_input()->add_control()->add_fp32_false_true(1);
  return config;
}

TEST(MessageJson, PrintsDefaultsAsTritonDoes) {
  const auto json = to_json(sample(), Defaults::kPrint);
  EXPECT_EQ(json.begin().key(), "name");
  EXPECT_EQ(json["platform"], "");
  EXPECT_EQ(
      json["input"].dump(),
      R"([{"name":"x","data_type":"TYPE_FP32","format":"FORMAT_NONE","dims":[-1,1099511627776],)"
      R"("is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,)"
      R"("is_non_linear_format_io":false}])");
  EXPECT_EQ(json["instance_group"].dump(), "[]");
  EXPECT_EQ(json["metric_tags"].dump(), "{}");
  EXPECT_EQ(json["parameters"].dump(), R"({"threads":{"string_value":"2"}})");
  EXPECT_FALSE(json.contains("dynamic_batching"));  // the other one of the oneof is set
  EXPECT_FALSE(json.contains("version_policy"));
  EXPECT_EQ(json["sequence_batching"]["direct"].dump(),
            R"({"max_queue_delay_microseconds":0,"minimum_slot_utilization":0.1})");
  EXPECT_EQ(json["sequence_batching"]["control_input"][0]["control"][0]["fp32_false_true"].dump(),
            "[1]");
}

TEST(MessageJson, OmitsDefaults) {
  inference::ModelStatisticsResponse statistics;
  EXPECT_EQ(to_json(statistics, Defaults::kOmit).dump(), "{}");
  statistics.add_model_stats()->set_last_inference(~uint64_t{0});
  EXPECT_EQ(to_json(statistics, Defaults::kOmit).dump(),
            R"({"model_stats":[{"last_inference":18446744073709551615}]})");
}

TEST(MessageJson, ReadsBackWhatItPrints) {
  const inference::ModelConfig config = sample();
  for (const Defaults defaults : {Defaults::kPrint, Defaults::kOmit}) {
    inference::ModelConfig read;
    parse_json(to_json(config, defaults).dump(), read);
    EXPECT_EQ(read.SerializeAsString(), config.SerializeAsString());
  }
}

TEST(MessageJson, ReadsWhatProtobufAccepts) {
  inference::ModelConfig config;
  parse_json(R"({"maxBatchSize":"4","input":[{"name":"x","dataType":11,"dims":["3",4.0]}],
    "dynamic_batching":{"priority_queue_policy":{"2":{"timeout_action":"DELAY"}}},"version_policy":null})",
             config);
  EXPECT_EQ(config.max_batch_size(), 4);
  EXPECT_EQ(config.input(0).data_type(), inference::TYPE_FP32);
  EXPECT_EQ(config.input(0).dims(0), 3);
  EXPECT_EQ(config.input(0).dims(1), 4);
  EXPECT_EQ(config.dynamic_batching().priority_queue_policy().at(2).timeout_action(),
            inference::ModelQueuePolicy::DELAY);
}

TEST(MessageJson, NamesThePlaceOfAnError) {
  const std::pair<const char*, const char*> cases[] = {
      {"{", "the text is not valid JSON"},
      {"[]", "expected an object"},
      {R"({"nope":1})", "nope: Cannot find field."},
      {R"({"input":[{"dims":[1,"a"]}]})",
       R"(input[0].dims[1]: expected an integer in range, got "a")"},
      {R"({"input":[{"dims":[9223372036854775808]}]})",
       "input[0].dims[0]: expected an integer in range, got 9223372036854775808"},
      {R"({"max_batch_size":-2147483649})",
       "max_batch_size: expected an integer in range, got -2147483649"},
      {R"({"max_batch_size":1e300})", "max_batch_size: expected an integer in range, got 1e+300"},
      {R"({"input":{}})", "input: expected a list"},
      {R"({"input":[{"data_type":"TYPE_X"}]})",
       R"(input[0].data_type: invalid value "TYPE_X" for type inference.DataType)"},
      {R"({"parameters":{"a":{"string_value":1}}})",
       R"(parameters["a"].string_value: expected a string)"},
      {R"({"dynamic_batching":{"max_queue_delay_microseconds":-1}})",
       "dynamic_batching.max_queue_delay_microseconds: expected an integer in range, got -1"},
  };
  for (const auto& [text, message] : cases) {
    inference::ModelConfig config;
    try {
      parse_json(text, config);
      ADD_FAILURE() << text;
    } catch (const serving::Error& error) {
      EXPECT_EQ(error.code(), serving::Code::kInvalidArgument);
      EXPECT_STREQ(error.what(), message);
    }
  }
}

}  // namespace
}  // namespace anymps::server
