// SPDX-License-Identifier: Apache-2.0
// Messages of the gRPC protocol to requests and back, without gRPC. Words of errors are Triton's.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "server/grpc/infer_codec.h"
#include "server/memory/shared_memory.h"

namespace anymps::server {
namespace {

using inference::ModelInferRequest;
using Message = std::shared_ptr<ModelInferRequest>;

Message message(const std::string& datatype = "FP32", std::vector<int64_t> shape = {1, 4}) {
  auto m = std::make_shared<ModelInferRequest>();
  m->set_model_name("add1");
  auto* input = m->add_inputs();
  input->set_name("x");
  input->set_datatype(datatype);
  for (const int64_t extent : shape) input->add_shape(extent);
  return m;
}

const SharedMemory& nothing() {
  static const SharedMemory memory;
  return memory;
}

std::string decode_error(const Message& m, const SharedMemory& memory = nothing()) {
  try {
    decode_infer(m, memory);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string input_bytes(const RequestPtr& request, size_t input = 0) {
  std::string bytes;
  for (const Buffer& buffer : request->inputs.at(input).buffers)
    bytes.append(reinterpret_cast<const char*>(buffer.data), buffer.bytes);
  return bytes;
}

template <typename T>
std::string raw(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

TEST(GrpcCodec, RawTensorsAreUsedWhereTheyLie) {
  Message m = message();
  m->set_id("abc");
  m->set_model_version("7");
  m->add_raw_input_contents(std::string(64, 'z'));
  const char* data = m->raw_input_contents(0).data();
  RequestPtr request = decode_infer(m, nothing());
  EXPECT_EQ(request->model, "add1");
  EXPECT_EQ(request->id, "abc");
  EXPECT_EQ(request->version, 7);
  EXPECT_EQ(request->inputs[0].shape, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(reinterpret_cast<const char*>(request->inputs[0].buffers.at(0).data), data);
  m.reset();  // the buffer keeps the message alive
  EXPECT_EQ(input_bytes(request), std::string(64, 'z'));
}

TEST(GrpcCodec, TypedContents) {
  struct Case {
    const char* datatype;
    std::function<void(inference::InferTensorContents&)> fill;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"BOOL", [](auto& c) { c.add_bool_contents(true), c.add_bool_contents(false); },
       std::string("\1\0", 2)},
      {"INT8", [](auto& c) { c.add_int_contents(-128), c.add_int_contents(127); },
       raw<int8_t>({-128, 127})},
      {"INT16", [](auto& c) { c.add_int_contents(-300); }, raw<int16_t>({-300})},
      {"INT32", [](auto& c) { c.add_int_contents(-70000); }, raw<int32_t>({-70000})},
      {"INT64", [](auto& c) { c.add_int64_contents(INT64_MIN); }, raw<int64_t>({INT64_MIN})},
      {"UINT8", [](auto& c) { c.add_uint_contents(255); }, raw<uint8_t>({255})},
      {"UINT16", [](auto& c) { c.add_uint_contents(65535); }, raw<uint16_t>({65535})},
      {"UINT32", [](auto& c) { c.add_uint_contents(4000000000U); }, raw<uint32_t>({4000000000U})},
      {"UINT64", [](auto& c) { c.add_uint64_contents(UINT64_MAX); }, raw<uint64_t>({UINT64_MAX})},
      {"FP32", [](auto& c) { c.add_fp32_contents(1.5F); }, raw<float>({1.5F})},
      {"FP64", [](auto& c) { c.add_fp64_contents(0.1); }, raw<double>({0.1})},
      {"BYTES", [](auto& c) { c.add_bytes_contents("ab"), c.add_bytes_contents(""); },
       std::string("\2\0\0\0ab\0\0\0\0", 10)},
  };
  for (const Case& c : cases) {
    const Message m = message(c.datatype, {1});
    c.fill(*m->mutable_inputs(0)->mutable_contents());
    EXPECT_EQ(input_bytes(decode_infer(m, nothing())), c.expected) << c.datatype;
    const Message other = message(std::string(c.datatype) == "FP32" ? "INT32" : "FP32", {1});
    c.fill(*other->mutable_inputs(0)->mutable_contents());
    EXPECT_NE(
        decode_error(other).find("unexpected explicit tensor data for input tensor 'x' for model "
                                 "'add1' of type '"),
        std::string::npos)
        << c.datatype;
  }
}

TEST(GrpcCodec, TypedContentsThatDoNotFit) {
  Message m = message("INT8", {1});
  m->mutable_inputs(0)->mutable_contents()->add_int_contents(128);
  EXPECT_EQ(decode_error(m),
            "input tensor 'x' for model 'add1' has a value that does not fit INT8: 128");
  m = message("UINT16", {1});
  m->mutable_inputs(0)->mutable_contents()->add_uint_contents(65536);
  EXPECT_NE(decode_error(m), "");
  m = message("FP16", {1});
  m->mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_EQ(decode_error(m),
            "unexpected explicit tensor data for input tensor 'x' for model 'add1' of type 'FP32', "
            "expected datatype 'FP16'");
  m = message("FP32", {1});
  m->mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  m->mutable_inputs(0)->mutable_contents()->add_int_contents(1);
  EXPECT_NE(decode_error(m).find("of type 'INT32'"), std::string::npos);
}

TEST(GrpcCodec, ContentsThatAreMissingOrDouble) {
  Message m = message();
  EXPECT_EQ(decode_error(m),
            "unable to find data for input tensor 'x' for model 'add1' in request.");
  m->add_raw_input_contents("1234");
  m->mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_EQ(decode_error(m),
            "contents field must not be specified when using raw_input_contents for 'x' for model "
            "'add1'");
  m = message();
  *m->add_inputs() = m->inputs(0);
  m->add_raw_input_contents("1");
  m->add_raw_input_contents("2");
  EXPECT_EQ(decode_error(m), "[request id: <id_unknown>] input 'x' already exists in request");
  m = message("FP33");
  m->add_raw_input_contents("1");
  EXPECT_NE(decode_error(m).find("inference input 'x' data-type is '<invalid>'"),
            std::string::npos);
}

TEST(GrpcCodec, Versions) {
  const auto error = [](const std::string& version) {
    const Message m = message();
    m->add_raw_input_contents("1234");
    m->set_model_version(version);
    return decode_error(m);
  };
  EXPECT_EQ(error("1"), "");
  for (const char* version : {"abc", "1x", " 1", "99999999999999999999"})
    EXPECT_NE(error(version).find("failed to get model version from specified version string"),
              std::string::npos);
  for (const char* version : {"0", "-3"})
    EXPECT_NE(error(version).find("invalid model version specified"), std::string::npos);
}

TEST(GrpcCodec, Parameters) {
  const Message m = message();
  m->add_raw_input_contents("1234");
  auto& parameters = *m->mutable_parameters();
  parameters["sequence_id"].set_string_param("s");
  parameters["sequence_start"].set_bool_param(true);
  parameters["priority"].set_uint64_param(3);
  parameters["timeout"].set_int64_param(500);
  parameters["mine"].set_double_param(1.5);
  parameters["triton_enable_empty_final_response"].set_bool_param(true);
  const RequestPtr request = decode_infer(m, nothing());
  EXPECT_EQ(std::get<std::string>(request->sequence), "s");
  EXPECT_TRUE(request->sequence_start);
  EXPECT_FALSE(request->sequence_end);
  EXPECT_EQ(request->priority, 3U);
  EXPECT_EQ(request->timeout_us, 500U);
  EXPECT_EQ(std::get<double>(request->parameters.at("mine")), 1.5);
  EXPECT_EQ(request->parameters.size(), 1U);

  parameters["sequence_id"].set_int64_param(-1);
  parameters["timeout"].set_int64_param(-1);
  EXPECT_EQ(std::get<uint64_t>(decode_infer(m, nothing())->sequence), UINT64_MAX);
  EXPECT_EQ(decode_infer(m, nothing())->timeout_us, 0U);
}

TEST(GrpcCodec, ParametersOfTheWrongType) {
  const auto error = [](const std::string& name,
                        const std::function<void(inference::InferParameter&)>& set) {
    const Message m = message();
    m->add_raw_input_contents("1234");
    set((*m->mutable_parameters())[name]);
    return decode_error(m);
  };
  const auto text = [](inference::InferParameter& p) { p.set_string_param("x"); };
  const auto real = [](inference::InferParameter& p) { p.set_double_param(1); };
  const auto negative = [](inference::InferParameter& p) { p.set_int64_param(-1); };
  const auto none = [](inference::InferParameter&) {};
  EXPECT_EQ(
      error("sequence_id", real),
      "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.");
  EXPECT_EQ(error("sequence_start", text),
            "invalid value type for 'sequence_start' parameter, expected bool_param.");
  EXPECT_EQ(error("priority", text),
            "invalid value type for 'priority' parameter, expected int64_param or uint64_param.");
  EXPECT_EQ(error("priority", negative), "invalid value for 'priority', expected value >= 0.");
  EXPECT_EQ(error("timeout", text),
            "invalid value type for 'timeout' parameter, expected int64_param.");
  EXPECT_EQ(error("mine", none),
            "invalid value type for 'mine' parameter, expected int64_param, bool_param, or "
            "string_param.");
  EXPECT_EQ(error("triton_mine", text),
            "parameter keys starting with 'triton_' are reserved for Triton usage. Only the "
            "following keys starting with 'triton_' are allowed: "
            "triton_enable_empty_final_response");
}

TEST(GrpcCodec, RequestedOutputs) {
  const Message m = message();
  m->add_raw_input_contents("1234");
  auto* output = m->add_outputs();
  output->set_name("y");
  (*output->mutable_parameters())["classification"].set_int64_param(2);
  *m->add_outputs() = *output;  // twice is once
  RequestPtr request = decode_infer(m, nothing());
  ASSERT_EQ(request->outputs.size(), 1U);
  EXPECT_EQ(request->outputs[0].classes, 2U);
  (*output->mutable_parameters())["classification"].set_int64_param(0);
  EXPECT_EQ(decode_error(m), "invalid value for 'classification' parameter, expected >= 0");
  (*output->mutable_parameters())["classification"].set_string_param("2");
  EXPECT_EQ(decode_error(m),
            "invalid value type for 'classification' parameter, expected int64_param");
}

TEST(GrpcCodec, SharedMemory) {
  const std::string key = "/anymps_codec_test_" + std::to_string(getpid());
  const int file = shm_open(key.c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_EQ(ftruncate(file, 64), 0);
  ASSERT_EQ(write(file, "0123456789abcdef", 16), 16);
  SharedMemory memory;
  memory.add("r", key, 0, 64);
  close(file);
  shm_unlink(key.c_str());

  const Message m = message();
  auto& parameters = *m->mutable_inputs(0)->mutable_parameters();
  parameters["shared_memory_offset"].set_int64_param(4);
  EXPECT_EQ(decode_error(m, memory),
            "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter "
            "for tensor 'x'");
  parameters["shared_memory_region"].set_string_param("r");
  EXPECT_EQ(decode_error(m, memory),
            "'shared_memory_byte_size' must be specified along with 'shared_memory_region' "
            "parameter for tensor 'x'");
  parameters["shared_memory_byte_size"].set_int64_param(8);
  EXPECT_EQ(input_bytes(decode_infer(m, memory)), "456789ab");
  m->mutable_inputs(0)->mutable_contents();
  EXPECT_EQ(decode_error(m, memory),
            "unexpected 'content' provided when using shared memory for input tensor 'x' for model "
            "'add1'");
  m->mutable_inputs(0)->clear_contents();
  parameters["shared_memory_byte_size"].set_int64_param(-8);
  EXPECT_EQ(decode_error(m, memory), "Invalid offset + byte size for shared memory region: 'r'");
  parameters["shared_memory_byte_size"].set_string_param("8");
  EXPECT_EQ(decode_error(m, memory),
            "invalid value type for 'shared_memory_byte_size' parameter for tensor 'x', expected "
            "int64_param.");
  parameters["shared_memory_byte_size"].set_int64_param(8);
  auto* output = m->add_outputs();
  output->set_name("y");
  *output->mutable_parameters() = parameters;
  RequestPtr request = decode_infer(m, memory);
  EXPECT_EQ(request->outputs[0].target.bytes, 8U);
  EXPECT_TRUE(targets_of(*request).has("y"));
  (*output->mutable_parameters())["classification"].set_int64_param(1);
  EXPECT_EQ(decode_error(m, memory),
            "output can't set both 'shared_memory_region' and 'classification'");
}

Response three_outputs(std::string* large) {
  Response response;
  response.model = "m";
  response.version = "2";
  response.id = "q";
  response.parameters["n"] = uint64_t{5};
  const auto buffer = [](std::string& text) {
    return Buffer{nullptr, reinterpret_cast<std::byte*>(text.data()), text.size()};
  };
  static std::string small = "abcd";
  response.outputs.push_back({"y", AMPS_F32, {1}, buffer(small)});
  response.outputs.push_back({"z", AMPS_STRING, {-0, 2}, buffer(*large)});
  response.outputs.push_back({"s", AMPS_U8, {4}, buffer(small)});
  return response;
}

TEST(GrpcCodec, ResponsesAreMessages) {
  std::string large(5000, 'L');
  const Wire wire = encode_infer(three_outputs(&large), {{"s"}}, false);
  bool in_place = false;
  for (const Wire::Part& part : wire.parts)
    in_place |= reinterpret_cast<const char*>(part.tensor.data) == large.data();
  EXPECT_TRUE(in_place);
  EXPECT_EQ(wire.flat().size(), wire.size);
  inference::ModelInferResponse m;
  ASSERT_TRUE(m.ParseFromString(wire.flat()));
  EXPECT_EQ(m.model_name(), "m");
  EXPECT_EQ(m.model_version(), "2");
  EXPECT_EQ(m.id(), "q");
  EXPECT_EQ(m.parameters().at("n").int64_param(), 5);
  EXPECT_EQ(m.parameters_size(), 1);
  ASSERT_EQ(m.raw_output_contents_size(), 3);
  EXPECT_EQ(m.raw_output_contents(0), "abcd");
  EXPECT_EQ(m.raw_output_contents(1), large);
  EXPECT_EQ(m.raw_output_contents(2), "");  // it lies in shared memory
  EXPECT_EQ(m.outputs(1).datatype(), "BYTES");
  EXPECT_EQ(m.outputs(2).name(), "s");
}

TEST(GrpcCodec, StreamedResponses) {
  std::string large(70000, 'L');
  inference::ModelStreamInferResponse m;
  ASSERT_TRUE(m.ParseFromString(encode_streamed(three_outputs(&large), {}).flat()));
  EXPECT_TRUE(m.infer_response().parameters().at("triton_final_response").bool_param());
  EXPECT_EQ(m.infer_response().raw_output_contents(1), large);
  EXPECT_EQ(m.error_message(), "");
  Response failed{"m", {}, "q", {}, {}, Error(Code::kNotFound, "no such model"), true};
  ASSERT_TRUE(m.ParseFromString(encode_streamed(std::move(failed), {}).flat()));
  EXPECT_EQ(m.error_message(), "no such model");
  EXPECT_EQ(m.infer_response().id(), "q");
  EXPECT_EQ(m.infer_response().parameters_size(), 0);
}

}  // namespace
}  // namespace anymps::server
