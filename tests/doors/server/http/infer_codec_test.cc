// SPDX-License-Identifier: Apache-2.0
// Bodies of inference requests and responses. Words and codes of errors are what tritonserver 2.51
// answers to the same bodies.
#include "server/http/infer_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "server/http/generate.h"
#include "server/http/json_writer.h"
#include "server/http/transport/compression.h"

namespace anymps::server::http {
namespace {

Buffer no_region(const std::string& region, uint64_t, uint64_t) {
  throw Error(Code::kNotFound, "Unable to find shared memory region: '" + region + "'");
}

struct Decoded {
  Request request;
  ReplyForm form;
};

Decoded decode(const std::string& json, const std::string& binary = "",
               const FindRegion& find = no_region) {
  Decoded result;
  result.request.model = "m";
  result.form = decode_infer(own(json + binary), json.size(), find, result.request);
  return result;
}

std::string failure(const std::string& json, const std::string& binary = "") {
  try {
    decode(json, binary);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
  return "";
}

template <class T>
std::vector<T> values(const InputTensor& input) {
  std::string bytes;
  for (const Buffer& buffer : input.buffers)
    bytes.append(reinterpret_cast<const char*>(buffer.data), buffer.bytes);
  std::vector<T> result(bytes.size() / sizeof(T));
  std::memcpy(result.data(), bytes.data(), result.size() * sizeof(T));
  return result;
}

std::string input(const std::string& rest) {
  return "{\"inputs\":[{\"name\":\"X\"," + rest + "}]}";
}

std::string of_type(const std::string& type, const std::string& data, int count = 1) {
  return input("\"shape\":[" + std::to_string(count) + "],\"datatype\":\"" + type +
               "\",\"data\":" + data);
}

TEST(InferCodec, ReadsFlatAndNestedData) {
  const Decoded flat = decode(of_type("FP32", "[1,-2.5,1e-7,3]", 4));
  EXPECT_EQ(values<float>(flat.request.inputs[0]), (std::vector<float>{1, -2.5f, 1e-7f, 3}));
  const Decoded nested = decode(
      "{\"id\":\"a\\u00e9\\n\",\"inputs\":[{\"name\":\"X\",\"shape\":[2,2],\"datatype\":\"INT32\","
      "\"data\":[[1,-2],[3,2147483647]]}]}");
  EXPECT_EQ(nested.request.id, "a\xc3\xa9\n");
  EXPECT_EQ(nested.request.inputs[0].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(values<int32_t>(nested.request.inputs[0]), (std::vector<int32_t>{1, -2, 3, INT32_MAX}));
}

TEST(InferCodec, DataMayComeBeforeItsType) {
  const Decoded decoded =
      decode(input("\"data\":[[1],[2]],\"parameters\":{\"x\":[1]},\"datatype\":\"INT8\","
                   "\"shape\":[2,1]"));
  EXPECT_EQ(values<int8_t>(decoded.request.inputs[0]), (std::vector<int8_t>{1, 2}));
}

TEST(InferCodec, EveryTypeKeepsItsLimits) {
  EXPECT_EQ(values<uint8_t>(decode(of_type("BOOL", "[true,false]", 2)).request.inputs[0]),
            (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(values<uint64_t>(decode(of_type("UINT64", "[18446744073709551615]")).request.inputs[0]),
            (std::vector<uint64_t>{UINT64_MAX}));
  EXPECT_EQ(values<int64_t>(decode(of_type("INT64", "[-9223372036854775808]")).request.inputs[0]),
            (std::vector<int64_t>{INT64_MIN}));
  EXPECT_EQ(values<double>(decode(of_type("FP64", "[0.1]")).request.inputs[0]),
            (std::vector<double>{0.1}));
  const std::vector<float> special =
      values<float>(decode(of_type("FP32", "[NaN,Infinity,-Inf,1e39]", 4)).request.inputs[0]);
  EXPECT_TRUE(std::isnan(special[0]));
  EXPECT_EQ(special[1], INFINITY);
  EXPECT_EQ(special[2], -INFINITY);
  EXPECT_EQ(special[3], INFINITY);
  EXPECT_EQ(values<char>(decode(of_type("BYTES", "[\"ab\",\"\"]", 2)).request.inputs[0]),
            (std::vector<char>{2, 0, 0, 0, 'a', 'b', 0, 0, 0, 0}));
}

TEST(InferCodec, RefusesAsTritonDoes) {
  const std::string kInternal = "1 ", kInvalid = "3 ";
  const std::string json = kInternal + "failed to parse the request JSON buffer: ";
  const std::string shape = kInternal +
                            "Unable to parse 'data': Shape does not match true shape of 'data' "
                            "field";
  const std::string one_of =
      kInvalid +
      "Input must set only one of the following fields: 'data', 'binary_data_size' in "
      "'parameters', 'shared_memory_region' in 'parameters'. But";
  const std::pair<std::string, std::string> cases[] = {
      {"", json + "The document is empty. at 0"},
      {"{", json + "Missing a name for object member. at 1"},
      {"{\"a\" 1}", json + "Missing a colon after a name of object member. at 5"},
      {"{\"a\":1,}", json + "Missing a name for object member. at 7"},
      {"[1,]", json + "Invalid value. at 3"},
      {"{\"a\":tru}", json + "Invalid value. at 8"},
      {"{\"a\":\"x", json + "Missing a closing quotation mark in string. at 7"},
      {"{\"a\":\"\\q\"}", json + "Invalid escape character in string. at 6"},
      {"{\"a\":\"\\ud800\"}", json + "The surrogate pair in string is invalid. at 6"},
      {"{\"a\":01}", json + "Missing a comma or '}' after an object member. at 6"},
      {"{\"a\":1.}", json + "Miss fraction part in number. at 7"},
      {"{\"a\":1e}", json + "Miss exponent in number. at 7"},
      {"{\"a\":-}", json + "Invalid value. at 6"},
      {"[1 2]", json + "Missing a comma or ']' after an array element. at 3"},
      {"{} x", json + "The document root must not be followed by other values. at 3"},
      {"{\"a\":1e999}", json + "Number too big to be stored in double. at 5"},
      {"{}", kInternal + "Unable to parse 'inputs': attempt to access non-existing object member "
                         "'inputs'"},
      {"5", kInternal + "Unable to parse 'inputs': attempt to access non-existing object member "
                        "'inputs'"},
      {"{\"inputs\":5}",
       kInternal + "Unable to parse 'inputs': attempt to access JSON non-array as array"},
      {"{\"inputs\":[5]}", one_of + " no field is set"},
      {"{\"inputs\":[{\"data\":[1]}]}",
       kInternal + "Unable to parse 'name': attempt to access non-existing object member 'name'"},
      {input("\"data\":[1]"), kInternal + "Unable to parse 'datatype': attempt to access "
                                          "non-existing object member 'datatype'"},
      {input("\"datatype\":\"FP32\",\"data\":[1]"),
       kInternal + "Unable to parse 'shape': attempt to access non-existing object member 'shape'"},
      {input("\"datatype\":\"FP32\",\"shape\":[-1],\"data\":[1]"),
       kInternal + "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as "
                   "unsigned-integer"},
      {input("\"datatype\":\"WHAT\",\"shape\":[1],\"data\":[1]"),
       kInvalid + "invalid datatype for input X"},
      {of_type("FP16", "[1]"),
       kInvalid + "receiving FP16 data via JSON is not supported. Please use the binary data "
                  "format for input X"},
      {of_type("FP32", "[1]", 2), shape},
      {of_type("FP32", "[1,2,3]", 2), shape},
      {of_type("FP32", "1"),
       kInternal + "Unable to parse 'data': attempt to access JSON non-array as array"},
      {of_type("FP32", "[\"1\"]"),
       kInternal + "Unable to parse 'data': attempt to access JSON non-number as double"},
      {of_type("INT32", "[1.5]"),
       kInternal + "Unable to parse 'data': attempt to access JSON non-signed-integer as "
                   "signed-integer"},
      {of_type("INT32", "[5000000000]"), kInvalid + "value 5000000000 is out of range for input X"},
      {of_type("UINT8", "[256]"), kInvalid + "value 256 is out of range for input X"},
      {of_type("UINT8", "[-1]"),
       kInternal + "Unable to parse 'data': attempt to access JSON non-unsigned-integer as "
                   "unsigned-integer"},
      {of_type("BOOL", "[1]"),
       kInternal + "Unable to parse 'data': attempt to access JSON non-boolean as boolean"},
      {of_type("BYTES", "[1]"),
       kInternal + "Unable to parse JSON bytes array: attempt to access JSON non-string as string"},
      {input("\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1],\"parameters\":"
             "{\"binary_data_size\":4}"),
       one_of + " set 'data' 'binary_data_size'"},
      {input("\"datatype\":\"FP32\",\"shape\":[1],\"parameters\":{\"binary_data_size\":4}"),
       kInvalid + "unexpected size for input 'X', expecting 4 additional bytes for model 'm'"},
      {input("\"datatype\":\"FP32\",\"shape\":[1],\"parameters\":{\"shared_memory_region\":\"r\"}"),
       "2 Unable to find shared memory region: 'r'"},
      {"{\"parameters\":{\"priority\":-1},\"inputs\":[]}",
       kInternal + "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as "
                   "unsigned-integer"},
      {"{\"parameters\":{\"triton_x\":1},\"inputs\":[]}",
       kInvalid + "parameter keys starting with 'triton_' are reserved for Triton usage and should "
                  "not be specified."},
      {"{\"parameters\":{\"x\":[1]},\"inputs\":[]}",
       kInvalid + "parameter 'x' has invalid type. It should be either 'int', 'bool', or "
                  "'string'."},
      {"{\"inputs\":[],\"outputs\":[{\"name\":\"Y\",\"parameters\":{\"shared_memory_region\":\"r\","
       "\"classification\":1}}]}",
       kInvalid + "Output can't set both 'shared_memory_region' and 'classification'"},
      {"{\"inputs\":[],\"outputs\":[{\"name\":\"Y\",\"parameters\":{\"classification\":\"a\"}}]}",
       kInternal + "Unable to set 'classification': attempt to access JSON non-unsigned-integer as "
                   "unsigned-integer"},
  };
  for (const auto& [body, error] : cases) EXPECT_EQ(failure(body), error) << body;
}

TEST(InferCodec, HugeShapesAllocateNothing) {
  EXPECT_NE(failure(of_type("FP32", "[1]", 2000000000)), "");
  EXPECT_NE(failure(input("\"shape\":[4000000000,4000000000,4000000000],\"datatype\":\"FP32\","
                          "\"data\":[1]")),
            "");
  EXPECT_NE(failure(input("\"shape\":[1000000000,4000000000],\"datatype\":\"BYTES\",\"parameters\":"
                          "{\"binary_data_size\":18446744073709551615}")),
            "");
  EXPECT_NE(failure(std::string(100000, '[')), "");
}

TEST(InferCodec, BinaryDataIsUsedWhereItLies) {
  const std::string json =
      "{\"inputs\":[{\"name\":\"A\",\"shape\":[1],\"datatype\":\"FP32\",\"parameters\":"
      "{\"binary_data_size\":4}},{\"name\":\"B\",\"shape\":[1],\"datatype\":\"FP16\","
      "\"parameters\":{\"binary_data_size\":2}}]}";
  const Buffer body = own(json + "aaaabb");
  Request request;
  request.model = "m";
  decode_infer(body, json.size(), no_region, request);
  ASSERT_EQ(request.inputs.size(), 2u);
  EXPECT_EQ(request.inputs[0].buffers[0].data, body.data + json.size());
  EXPECT_EQ(request.inputs[1].buffers[0].data, body.data + json.size() + 4);
  EXPECT_EQ(request.inputs[1].buffers[0].bytes, 2u);
  EXPECT_EQ(failure(json, "aaaabbc"), "3 unexpected additional input data for model 'm'");
  EXPECT_EQ(failure(json + "aaaabb"),
            "1 failed to parse the request JSON buffer: The document root must not be followed by "
            "other values. at " +
                std::to_string(json.size()));
  EXPECT_EQ(failure(json, "aaaab"),
            "3 unexpected size for input 'B', expecting 1 additional bytes for model 'm'");
}

TEST(InferCodec, ParametersReachTheRequest) {
  const Request request =
      decode(
          "{\"parameters\":{\"sequence_id\":7,\"sequence_start\":true,\"sequence_end\":true,"
          "\"priority\":3,\"timeout\":9,\"a\":-1,\"b\":true,\"c\":\"x\",\"d\":1.5,"
          "\"e\":18446744073709551615},\"inputs\":[]}")
          .request;
  EXPECT_EQ(std::get<uint64_t>(request.sequence), 7u);
  EXPECT_TRUE(request.sequence_start && request.sequence_end);
  EXPECT_EQ(request.priority, 3u);
  EXPECT_EQ(request.timeout_us, 9u);
  EXPECT_EQ(request.parameters, (Parameters{{"a", int64_t{-1}},
                                            {"b", true},
                                            {"c", std::string("x")},
                                            {"d", 1.5},
                                            {"e", uint64_t{UINT64_MAX}}}));
  EXPECT_EQ(std::get<std::string>(
                decode("{\"parameters\":{\"sequence_id\":\"s\"},\"inputs\":[]}").request.sequence),
            "s");
}

TEST(InferCodec, OutputsAndSharedMemory) {
  std::string seen;
  const FindRegion find = [&](const std::string& region, uint64_t offset, uint64_t bytes) {
    seen += region + " " + std::to_string(offset) + " " + std::to_string(bytes) + ";";
    return own(std::string(bytes, 'x'));
  };
  const Decoded decoded = decode(
      "{\"parameters\":{\"binary_data_output\":true},\"inputs\":[{\"name\":\"X\",\"shape\":[2],"
      "\"datatype\":\"FP32\",\"parameters\":{\"shared_memory_region\":\"r\","
      "\"shared_memory_offset\":8,\"shared_memory_byte_size\":16}}],\"outputs\":[{\"name\":\"A\"},"
      "{\"name\":\"B\",\"parameters\":{\"binary_data\":true,\"classification\":3}},{\"name\":\"C\","
      "\"parameters\":{\"shared_memory_region\":\"s\",\"shared_memory_byte_size\":4}},"
      "{\"name\":\"A\"}]}",
      "", find);
  EXPECT_EQ(seen, "r 8 16;s 0 4;");
  EXPECT_EQ(decoded.request.inputs[0].buffers[0].bytes, 16u);
  ASSERT_EQ(decoded.request.outputs.size(), 3u);
  EXPECT_EQ(decoded.request.outputs[1].classes, 3u);
  EXPECT_EQ(decoded.request.outputs[2].target.bytes, 4u);
  EXPECT_EQ(decoded.form.of("A"), OutputForm::Kind::kJson);
  EXPECT_EQ(decoded.form.of("B"), OutputForm::Kind::kBinary);
  EXPECT_EQ(decoded.form.of("C"), OutputForm::Kind::kSharedMemory);
  EXPECT_EQ(decoded.form.of("D"), OutputForm::Kind::kBinary);
}

TEST(InferCodec, RawBodyIsTheOnlyInput) {
  const std::vector<TensorInfo> inputs = {{"X", AMPS_F32, {-1, 2, -1}}};
  Request request;
  request.model = "m";
  const ReplyForm form = decode_raw(own("aaaabbbbccccdddd"), inputs, true, request);
  EXPECT_EQ(request.inputs[0].shape, (std::vector<int64_t>{1, 2, 2}));
  EXPECT_EQ(form.of("Y"), OutputForm::Kind::kBinary);
  Request wrong;
  EXPECT_THROW(decode_raw(own("aaaabbbbc"), inputs, true, wrong), Error);
  EXPECT_THROW(decode_raw(own("aaaa"), inputs, false, wrong), Error);
  const std::vector<TensorInfo> two = {{"X", AMPS_F32, {1}}, {"Y", AMPS_F32, {1}}};
  EXPECT_THROW(decode_raw(own("aaaa"), two, false, wrong), Error);
  Request text;
  decode_raw(own("hello"), std::vector<TensorInfo>{{"X", AMPS_STRING, {1}}}, false, text);
  EXPECT_EQ(values<char>(text.inputs[0]), (std::vector<char>{5, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'}));
}

Buffer float_buffer(const std::vector<float>& values) {
  return own(std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4));
}

std::string text(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data), buffer.bytes};
}

TEST(InferCodec, ResponsesInTritonsOrder) {
  Response response;
  response.model = "m";
  response.version = "3";
  response.id = "a\"b";
  response.parameters = {{"p", int64_t{1}}};
  response.outputs = {{"A", AMPS_F32, {2}, float_buffer({2, 1.1f})},
                      {"B", AMPS_F32, {1}, float_buffer({4})}};
  ReplyForm form;
  form.outputs = {{OutputForm::Kind::kBinary, "B"}};
  const EncodedBody body = encode_infer(response, form);
  EXPECT_EQ(text(body.pieces[0]),
            "{\"id\":\"a\\\"b\",\"model_name\":\"m\",\"model_version\":\"3\",\"parameters\":{"
            "\"p\":1},\"outputs\":[{\"name\":\"A\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":"
            "[2.0,1.100000023841858]},{\"name\":\"B\",\"datatype\":\"FP32\",\"shape\":[1],"
            "\"parameters\":{\"binary_data_size\":4}}]}");
  ASSERT_EQ(body.pieces.size(), 2u);
  EXPECT_EQ(body.pieces[1].data, response.outputs[1].data.data);  // not a copy
  EXPECT_EQ(body.json_bytes, body.pieces[0].bytes);
  response.outputs[0].data.bytes = 4;
  EXPECT_THROW(encode_infer(response, form), Error);
  response.outputs = {{"H", AMPS_F16, {1}, own("ab")}};
  EXPECT_THROW(encode_infer(response, {}), Error);
}

TEST(InferCodec, NumbersAsTritonPrintsThem) {
  const std::pair<double, std::string> cases[] = {{2, "2.0"},
                                                  {1e20, "100000000000000000000.0"},
                                                  {1e21, "1e21"},
                                                  {1.5e21, "1.5e21"},
                                                  {0.1, "0.1"},
                                                  {1e-5, "0.00001"},
                                                  {1e-7, "1e-7"},
                                                  {-0.0, "-0.0"},
                                                  {123456.75, "123456.75"},
                                                  {1.2345e-10, "1.2345e-10"}};
  for (const auto& [value, expected] : cases) {
    std::string out;
    append_json(out, value);
    EXPECT_EQ(out, expected);
  }
}

TEST(Generate, InputsParametersAndShapes) {
  const std::vector<TensorInfo> inputs = {{"X", AMPS_F32, {-1, -1}}, {"T", AMPS_STRING, {1}}};
  Request request;
  decode_generate(
      own("{\"id\":\"i\",\"X\":[1,2,3],\"T\":\"hi\",\"parameters\":{\"a\":1},\"b\":true}"), inputs,
      request);
  EXPECT_EQ(request.id, "i");
  EXPECT_EQ(request.inputs[0].shape, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(values<float>(request.inputs[0]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(request.inputs[1].shape, (std::vector<int64_t>{1}));
  EXPECT_EQ(request.parameters, (Parameters{{"a", int64_t{1}}, {"b", true}}));
  Request other;
  EXPECT_THROW(decode_generate(own("{\"X\":[[1,2],[3,4]]}"), inputs, other), Error);
  EXPECT_THROW(decode_generate(own("{\"T\":[\"a\",\"b\"]}"), inputs, other), Error);
  EXPECT_THROW(decode_generate(own("{\"parameters\":5}"), inputs, other), Error);
}

TEST(Generate, AnswersByName) {
  Response response;
  response.model = "m";
  response.version = "1";
  response.outputs = {{"Y", AMPS_F32, {1, 2}, float_buffer({1, 2})},
                      {"A", AMPS_F32, {1}, float_buffer({5})}};
  EXPECT_EQ(encode_generate(response),
            "{\"A\":5.0,\"Y\":[1.0,2.0],\"model_name\":\"m\",\"model_version\":\"1\"}");
}

TEST(Compression, BothWaysAndBounded) {
  const std::string body(300000, 'a');
  for (const Encoding encoding : {Encoding::kGzip, Encoding::kDeflate}) {
    const std::vector<Buffer> pieces = {own(body.substr(0, 1000)), own(body.substr(1000))};
    const Buffer packed = deflate_body(pieces, encoding);
    EXPECT_LT(packed.bytes, 2000u);
    EXPECT_EQ(text(inflate_body(packed, encoding, body.size())), body);
    EXPECT_THROW(inflate_body(packed, encoding, body.size() - 1), Error);
    Buffer cut = packed;
    cut.bytes -= 5;
    EXPECT_THROW(inflate_body(cut, encoding, body.size()), Error);
  }
  EXPECT_THROW(inflate_body(own("nonsense"), Encoding::kGzip, 100), Error);
  EXPECT_THROW(inflate_body(own(""), Encoding::kGzip, 100), Error);
  EXPECT_EQ(preferred_encoding("identity;q=0.5, gzip;q=0.1"), Encoding::kIdentity);
  EXPECT_EQ(preferred_encoding("br, gzip;q=0.8, deflate"), Encoding::kDeflate);
  EXPECT_EQ(preferred_encoding("gzip"), Encoding::kGzip);
  EXPECT_EQ(preferred_encoding("*"), Encoding::kIdentity);
  EXPECT_FALSE(parse_encoding("br"));
}

}  // namespace
}  // namespace anymps::server::http
