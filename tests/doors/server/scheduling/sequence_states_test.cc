// SPDX-License-Identifier: Apache-2.0
// Implicit state: what a request of a sequence leaves for the next one.
#include "server/scheduling/sequence_states.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scheduling/fake_instance.h"

namespace anymps::server {
namespace {

using test::Answers;
using test::bytes_of;
using test::config;
using test::FakeInstance;
using test::floats;
using test::instances;
using test::request;

const InputTensor* find(const Request& request, const std::string& name) {
  for (const InputTensor& input : request.inputs)
    if (input.name == name) return &input;
  return nullptr;
}

float number(const Buffer& buffer) {
  float value = 0;
  std::memcpy(&value, buffer.data, 4);
  return value;
}

// sum = state + x, which is both the answer "y" and the new state.
Response accumulate(Request& request) {
  const InputTensor* state = find(request, "state_in");
  EXPECT_TRUE(state);
  const float sum = number(state->buffers[0]) + number(find(request, "x")->buffers[0]);
  Response response;
  response.model = "m";
  if (sum > 900) {
    response.error = Error(Code::kInternal, "too large");
    return response;
  }
  for (const RequestedOutput& output : request.outputs)
    response.outputs.push_back({output.name, AMPS_F32, {1, 1}, bytes_of(&sum, 4)});
  return response;
}

class SequenceStatesTest : public ::testing::Test {
 protected:
  void make(const std::string& state, const std::string& more = "",
            FakeInstance::Run run = accumulate) {
    scheduler_ = make_scheduler(
        config("max_batch_size: 2 output { name: 'y' } " + more +
               " sequence_batching { max_sequence_idle_microseconds: 1000000000000 state { "
               "input_name: 'state_in' output_name: 'state_out' data_type: TYPE_FP32 dims: 1 " +
               state + " } }"),
        instances(1, nullptr, nullptr, std::move(run)), limiter_, metrics_, dir_);
  }
  const Response& infer(float x, bool start, std::vector<RequestedOutput> outputs = {}) {
    const std::string id = std::to_string(++count_);
    RequestPtr one = request(answers_, id, {floats("x", {1, 1}, x)});
    one->sequence = uint64_t{1};
    one->sequence_start = start;
    one->outputs = std::move(outputs);
    scheduler_->enqueue(std::move(one));
    return answers_[id];
  }
  std::string error(const std::string& state) {
    try {
      make(state);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kInvalidArgument);
      return e.what();
    }
    return "";
  }

  RateLimiter limiter_{false, {}};
  ModelMetrics metrics_;
  Answers answers_;
  std::filesystem::path dir_;
  std::unique_ptr<Scheduler> scheduler_;
  int count_ = 0;
};

TEST_F(SequenceStatesTest, StatesGoFromRequestToRequest) {
  make("");
  EXPECT_EQ(number(infer(1, true).outputs[0].data), 1);
  EXPECT_EQ(number(infer(2, false).outputs[0].data), 3);
  EXPECT_EQ(number(infer(4, false).outputs[0].data), 7);
  EXPECT_EQ(number(infer(5, true).outputs[0].data), 5);  // anew
}

TEST_F(SequenceStatesTest, StatesAreHandedOnWithoutACopy) {
  const std::byte* given = nullptr;
  make("", "", [&](Request& one) {
    const Buffer state = find(one, "state_in")->buffers[0];
    EXPECT_TRUE(!given || state.data == given);
    Response response = accumulate(one);
    for (const OutputTensor& output : response.outputs)
      if (output.name == "state_out") given = output.data.data;
    return response;
  });
  infer(1, true);
  given = nullptr;
  infer(1, false);
  infer(1, false);
  EXPECT_NE(given, nullptr);
}

TEST_F(SequenceStatesTest, StatesAreNotPartOfTheAnswerUnlessAskedFor) {
  make("");
  const Response& all = infer(1, true);
  ASSERT_EQ(all.outputs.size(), 1u);
  EXPECT_EQ(all.outputs[0].name, "y");
  const Response& both = infer(1, false, {{"state_out", 0, {}}, {"y", 0, {}}});
  ASSERT_EQ(both.outputs.size(), 2u);
  EXPECT_EQ(both.outputs[0].name, "state_out");
  EXPECT_EQ(number(both.outputs[0].data), 2);

  make("", "output { name: 'state_out' }");
  EXPECT_EQ(infer(1, true).outputs.size(), 2u);
  EXPECT_EQ(infer(1, false, {{"y", 0, {}}}).outputs.size(), 1u);
}

TEST_F(SequenceStatesTest, AStateInSharedMemoryIsACopy) {
  make("");
  float memory[2] = {-1, -1};
  const Buffer target{nullptr, reinterpret_cast<std::byte*>(memory), sizeof memory};
  const Response& response = infer(3, true, {{"state_out", 0, target}});
  EXPECT_EQ(memory[0], 3);
  EXPECT_EQ(response.outputs[0].data.data, target.data);
  EXPECT_EQ(response.outputs[0].data.bytes, 4u);
  memory[0] = 77;  // the client's memory is not the state
  EXPECT_EQ(number(infer(1, false).outputs[0].data), 4);
  const Buffer small{nullptr, reinterpret_cast<std::byte*>(memory), 2};
  EXPECT_EQ(infer(1, false, {{"state_out", 0, small}}).error->code(), Code::kInvalidArgument);
  EXPECT_EQ(infer(1, false, {{"state_out", 3, {}}}).error->code(), Code::kInvalidArgument);
}

TEST_F(SequenceStatesTest, AnErrorLeavesTheStateAsItWas) {
  make("");
  infer(10, true);
  EXPECT_EQ(infer(1000, false).error->code(), Code::kInternal);
  EXPECT_EQ(number(infer(1, false).outputs[0].data), 11);
}

TEST_F(SequenceStatesTest, AMissingStateIsAnError) {
  make("", "", [](Request& one) {
    Response response = accumulate(one);
    std::erase_if(response.outputs, [](const OutputTensor& o) { return o.name == "state_out"; });
    return response;
  });
  const Response& response = infer(1, true);
  ASSERT_TRUE(response.error);
  EXPECT_TRUE(response.outputs.empty());
  EXPECT_EQ(response.error->what(),
            std::string("model 'm' did not give the state 'state_out' of type FP32"));
}

TEST_F(SequenceStatesTest, InitialStatesComeFromFiles) {
  dir_ = std::filesystem::path(::testing::TempDir()) / "sequence_states_test";
  std::filesystem::create_directories(dir_ / "initial_state");
  const float value = 100;
  std::ofstream(dir_ / "initial_state" / "hundred", std::ios::binary)
      .write(reinterpret_cast<const char*>(&value), 4);
  const std::string begin = "initial_state { name: 'i' data_type: TYPE_FP32 ";
  make(begin + "dims: 1 data_file: 'hundred' }");
  EXPECT_EQ(number(infer(1, true).outputs[0].data), 101);
  EXPECT_EQ(number(infer(1, false).outputs[0].data), 102);
  EXPECT_EQ(number(infer(1, true).outputs[0].data), 101);
  make(begin + "dims: 1 zero_data: true }");
  EXPECT_EQ(number(infer(1, true).outputs[0].data), 1);

  EXPECT_NE(error(begin + "dims: 1 data_file: 'none' }").find("cannot read"), std::string::npos);
  std::ofstream(dir_ / "outside").write("1234", 4);
  for (const std::string& name : {(dir_ / "outside").string(), std::string("../outside")})
    EXPECT_NE(error(begin + "dims: 1 data_file: '" + name + "' }").find("must lie in the folder"),
              std::string::npos);
  EXPECT_EQ(error(begin + "dims: [1, 1] zero_data: true }"),
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions "
            "for state input 'state_in'. 2 != 1");
  EXPECT_EQ(error(begin + "dims: 2 zero_data: true }"),
            "'initial_state' dim for input name 'state_in' doesn't match 'state' dim description. "
            "2 != 1");
  EXPECT_EQ(error("initial_state { data_type: TYPE_FP32 dims: 1 zero_data: true }"),
            "Field 'name' must be set when using initial_state for state input 'state_in'.");
  EXPECT_EQ(error("initial_state { name: 'i' data_type: TYPE_INT32 dims: 1 zero_data: true }"),
            "The data type used for 'initial_state' field of state 'state_in' does not match the "
            "state data type.");
  std::ofstream(dir_ / "initial_state" / "short", std::ios::binary).write("12", 2);
  EXPECT_NE(error(begin + "dims: 1 data_file: 'short' }").find("expects 4 bytes"),
            std::string::npos);
}

TEST_F(SequenceStatesTest, RowsOfOneBatchHaveStatesOfOneShape) {
  const SequenceStates states(
      config("max_batch_size: 2 sequence_batching { state { input_name: 'i' "
             "output_name: 'o' data_type: TYPE_STRING dims: [-1, 2] } }"),
      {});
  const auto initial = states.initial();
  EXPECT_EQ((*initial)[0].shape, (std::vector<int64_t>{1, 1, 2}));
  EXPECT_EQ((*initial)[0].data.bytes, 8u);  // two empty strings
  SequenceStates::Values longer = *initial;
  longer[0].shape = {1, 3, 2};
  EXPECT_TRUE(states.together(nullptr, initial.get()));
  EXPECT_FALSE(states.together(nullptr, &longer));
  EXPECT_EQ((*states.zeros(&longer))[0].data.bytes, 24u);
}

}  // namespace
}  // namespace anymps::server
