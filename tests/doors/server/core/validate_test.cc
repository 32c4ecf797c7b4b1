// SPDX-License-Identifier: Apache-2.0
// What is refused before it is queued, in the words of tritonserver 2.51, which was asked each of
// these.
#include "server/core/validate.h"

#include <gtest/gtest.h>

#include "server/core/classification.h"
#include "server/repository/config_text.h"
#include "serving/datatype.h"

namespace anymps::server {
namespace {

InputTensor tensor(const std::string& name, std::vector<int64_t> shape, size_t bytes,
                   amps_dtype dtype = AMPS_F32) {
  InputTensor input{name, dtype, std::move(shape), {}};
  auto owner = std::make_shared<std::string>(bytes, '\0');
  input.buffers.push_back({owner, reinterpret_cast<std::byte*>(owner->data()), bytes});
  return input;
}

constexpr char kNote[] =
    " NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be "
    "prepended to each input shape. If you want to specify the full shape including the batch dim "
    "in your input dims config, try setting max_batch_size to zero. See the model configuration "
    "docs for more info on max_batch_size.";

std::string verdict(const std::string& config_text, Request request) {
  inference::ModelConfig config = parse_config_text(config_text, "test");
  config.set_name("m");
  try {
    validate(config, request);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "";
}

Request request_of(std::vector<InputTensor> inputs, std::vector<std::string> outputs = {}) {
  Request request;
  request.inputs = std::move(inputs);
  for (const std::string& name : outputs) request.outputs.push_back({name, 0, {}});
  return request;
}

TEST(Validate, AnswersAsTriton) {
  const std::string io = R"(input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" })";
  const std::string batched = "max_batch_size: 4 " + io;
  const std::string free = R"(max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: -1 })";
  const std::string id = "[request id: <id_unknown>] ";
  const std::string shape =
      id + "unexpected shape for input 'x' for model 'm'. Expected [-1,4], got ";
  const std::string bytes = id + "input byte size mismatch for input 'x' for model 'm'. Expected ";
  const int64_t huge = int64_t{1} << 62;
  const struct {
    std::string config;
    Request request;
    std::string message;
  } cases[] = {
      {batched, request_of({tensor("x", {1, 4}, 16)}), ""},
      {batched, request_of({tensor("x", {4, 4}, 64)}, {"y"}), ""},
      {io, request_of({tensor("x", {4}, 16)}), ""},
      {batched, request_of({tensor("z", {1, 4}, 16)}),
       "unexpected inference input 'z' for model 'm'"},
      {batched, request_of({}),
       id + "expected 1 inputs but got 0 inputs for model 'm'. Got input(s) [], but missing "
            "required input(s) ['x']. Please provide all required input(s)."},
      {batched, request_of({tensor("x", {1, 4}, 16), tensor("x", {1, 4}, 16)}),
       id + "input 'x' already exists in request"},
      {batched, request_of({tensor("x", {1, 5}, 20)}), shape + "[1,5]." + kNote},
      {batched, request_of({tensor("x", {4}, 16)}), shape + "[4]." + kNote},
      {batched, request_of({tensor("x", {1, 4, 1}, 16)}), shape + "[1,4,1]." + kNote},
      {batched, request_of({tensor("x", {}, 4)}),
       id + "input 'x' has no shape but model requires batch dimension for 'm'"},
      {batched, request_of({tensor("x", {5, 4}, 80)}),
       id + "inference request batch-size must be <= 4 for 'm'"},
      {batched, request_of({tensor("x", {0, 4}, 0)}), bytes + "16, got 0"},
      {batched, request_of({tensor("x", {1, 4}, 12)}), bytes + "16, got 12"},
      {batched, request_of({tensor("x", {1, 4}, 16, AMPS_I32)}),
       id + "inference input 'x' data-type is 'INT32', but model 'm' expects 'FP32'"},
      {batched, request_of({tensor("x", {1, 4}, 16)}, {"z"}),
       "unexpected inference output 'z' for model 'm'"},
      {batched, request_of({tensor("x", {1, -1}, 16)}),
       id + "All input dimensions should be specified for input 'x' for model 'm', got [1,-1]"},
      {io, request_of({tensor("x", {1, 4}, 16)}),
       id + "unexpected shape for input 'x' for model 'm'. Expected [4], got [1,4]. "},
      {free, request_of({tensor("x", {1, 7}, 28)}), ""},
      {free, request_of({tensor("x", {1, huge}, 16)}), bytes + "0, got 16"},
      {free, request_of({tensor("x", {1, 0}, 0)}), ""},
      {free, request_of({tensor("x", {1, -2}, 16)}), bytes + "-8, got 16"},
      {batched, request_of({tensor("x", {-1, 4}, 16)}), bytes + "68719476720, got 16"},
      {batched, request_of({tensor("x", {int64_t{1} << 40, 4}, 16)}),
       id + "inference request batch-size must be <= 4 for 'm'"},
      {batched, request_of({tensor("x", {1, 4}, 16), tensor("z", {1, 4}, 16)}),
       id + "expected 1 inputs but got 2 inputs for model 'm'. Got input(s) ['z','x'], but missing "
            "required input(s) ]. Please provide all required input(s)."},
      {R"(input { name: "x" data_type: TYPE_FP32 dims: 1 } input { name: "z" optional: true data_type: TYPE_INT64 dims: 2 })",
       request_of({tensor("x", {1}, 4)}), ""},
      {R"(input { name: "x" data_type: TYPE_FP32 dims: 1 } input { name: "z" optional: true data_type: TYPE_INT64 dims: 2 })",
       request_of({}),
       id + "expected number of inputs between 1 and 2 but got 0 inputs for model 'm'. Got "
            "input(s) [], but missing required input(s) ['x']. Please provide all required "
            "input(s)."},
      {R"(max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: 1 } input { name: "z" data_type: TYPE_FP32 dims: 1 })",
       request_of({tensor("x", {1, 1}, 4), tensor("z", {2, 1}, 8)}),
       id + "input 'x' batch size does not match other inputs for 'm'"},
  };
  for (const auto& [config, request, message] : cases) EXPECT_EQ(verdict(config, request), message);
  Request named = request_of({tensor("x", {5, 4}, 80)});
  named.id = "a1";
  EXPECT_EQ(verdict(batched, named),
            "[request id: a1] inference request batch-size must be <= 4 for 'm'");
}

std::vector<std::string> strings(const OutputTensor& tensor) {
  std::vector<std::string> list;
  for (size_t at = 0; at < tensor.data.bytes;) {
    uint32_t length = 0;
    std::memcpy(&length, tensor.data.data + at, 4);
    list.emplace_back(reinterpret_cast<const char*>(tensor.data.data) + at + 4, length);
    at += 4 + length;
  }
  return list;
}

template <typename T>
OutputTensor scores(amps_dtype dtype, std::vector<int64_t> shape, std::vector<T> values) {
  auto owner = std::make_shared<std::vector<T>>(std::move(values));
  return {"y",
          dtype,
          std::move(shape),
          {owner, reinterpret_cast<std::byte*>(owner->data()), owner->size() * sizeof(T)}};
}

TEST(Classification, GivesTheBestClasses) {
  using Strings = std::vector<std::string>;
  const OutputTensor two = scores<float>(AMPS_F32, {2, 4}, {2, 3, 4, 5, 9, 8, 7, 6});
  OutputTensor best = classify(two, 2, true, {}, {});
  EXPECT_EQ(best.dtype, AMPS_STRING);
  EXPECT_EQ(best.shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(strings(best), (Strings{"5.000000:3", "4.000000:2", "9.000000:0", "8.000000:1"}));
  best = classify(two, 99, false, {"a", "b"}, {});
  EXPECT_EQ(best.shape, (std::vector<int64_t>{8}));
  EXPECT_EQ(strings(best)[1], "8.000000:5");
  const OutputTensor whole = scores<int32_t>(AMPS_I32, {3}, {7, -1, 7});
  EXPECT_EQ(strings(classify(whole, 3, false, {"cat", "dog"}, {})),
            (Strings{"7:0:cat", "7:2", "-1:1:dog"}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(strings(classify(scores<float>(AMPS_F32, {3}, {nan, 1, 2}), 2, false, {}, {})),
            (Strings{"2.000000:2", "1.000000:1"}));
  EXPECT_TRUE(strings(classify(scores<float>(AMPS_F32, {0, 4}, {}), 2, true, {}, {})).empty());
}

// The numbers of serving/ are those of the protocol.
TEST(DataTypes, HaveTheNumbersOfTheProtocol) {
  for (int i = inference::DataType_MIN; i <= inference::DataType_MAX; ++i) {
    const std::string& name = inference::DataType_Name(inference::DataType(i));
    const std::optional<amps_dtype> dtype = serving::numbered_datatype(i);
    EXPECT_EQ(dtype, serving::parse_config_datatype(name)) << name;
    if (!dtype) continue;
    EXPECT_EQ(serving::datatype_number(*dtype), i) << name;
  }
  EXPECT_EQ(serving::numbered_datatype(-1), std::nullopt);
  EXPECT_EQ(serving::numbered_datatype(inference::DataType_MAX + 1), std::nullopt);
  EXPECT_EQ(serving::datatype_number(AMPS_C64), 0);
}

TEST(Classification, RefusesWhatItCannot) {
  EXPECT_THROW(classify(scores<uint16_t>(AMPS_F16, {2}, {0, 0}), 1, false, {}, {}), Error);
  std::byte memory[8];
  try {
    classify(scores<float>(AMPS_F32, {1}, {1}), 1, false, {}, {nullptr, memory, sizeof memory});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "shared memory size specified with the request for output 'y' (8 bytes) should be "
                 "at least 14 bytes to hold the results");
  }
}

}  // namespace
}  // namespace anymps::server
