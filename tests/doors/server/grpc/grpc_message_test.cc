// SPDX-License-Identifier: Apache-2.0
// Requests as they come from gRPC: in slices, compressed or not.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

#include "server/grpc/infer_message.h"
#include "server/memory/shared_memory.h"

namespace anymps::server {
namespace {

constexpr uint64_t kLimit = 100'000;

grpc::ByteBuffer in_slices(const std::string& bytes, size_t slice) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slice) slices.emplace_back(bytes.substr(at, slice));
  return {slices.data(), slices.size()};
}

std::string packed(const std::string& text, int window) {  // 15: zlib, 31: gzip
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string result(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

std::string infer_request(size_t tensor_bytes) {
  inference::ModelInferRequest message;
  message.set_model_name("m");
  message.set_id("q");
  message.add_raw_input_contents(std::string(tensor_bytes, 't'));
  return message.SerializeAsString();
}

grpc::Status parse_message(const std::string& bytes, size_t slice, InferMessage& message) {
  grpc::ByteBuffer buffer = in_slices(bytes, slice);
  return message.parse(buffer, kLimit);
}

TEST(GrpcMessage, PlainAndPacked) {
  const std::string text = infer_request(90'000);
  for (const std::string& bytes : {text, packed(text, 15), packed(text, 31)})
    for (const size_t slice : {size_t{2}, size_t{7}, size_t{16384}, bytes.size()}) {
      InferMessage message;
      const grpc::Status status = parse_message(bytes, slice, message);
      EXPECT_TRUE(status.ok()) << status.error_message() << " slice " << slice;
      EXPECT_EQ(message.id(), "q");
      EXPECT_EQ(message.model(), "m");
    }
}

TEST(GrpcMessage, WhatUnpacksToMoreThanTheLimit) {
  InferMessage message;
  const std::string bomb = packed(infer_request(20'000'000), 31);
  ASSERT_LT(bomb.size(), 30'000U);
  const grpc::Status status = parse_message(bomb, 16384, message);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message().find("Received message larger than max ("), 0U);
}

TEST(GrpcMessage, WhatIsNoMessage) {
  const std::string whole = packed(infer_request(5000), 31);
  for (const std::string& bytes :
       {std::string("\xff\xff\xff"), whole.substr(0, whole.size() / 2), std::string("\x1f\x8b"),
        std::string("\x1f\x8bxxxxxxxxxxxxxxxx"), packed("\xff\xff\xff", 15)}) {
    InferMessage message;
    const grpc::Status status = parse_message(bytes, 16384, message);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
    EXPECT_EQ(status.error_message(), "Unable to parse request");
  }
}

TEST(GrpcMessage, AnEmptyMessageIsOne) {
  InferMessage message;
  EXPECT_TRUE(parse_message("", 1, message).ok());
  EXPECT_EQ(message.model(), "");
}

TEST(GrpcMessage, TensorsOutliveTheCall) {
  auto message = std::make_shared<InferMessage>();
  inference::ModelInferRequest m;
  m.add_inputs()->set_datatype("UINT8");
  m.add_raw_input_contents(std::string(5000, 't'));
  ASSERT_TRUE(parse_message(m.SerializeAsString(), 1000, *message).ok());
  const RequestPtr request = InferMessage::decode(message, SharedMemory());
  message->cancelled = true;
  message.reset();
  EXPECT_TRUE(request->is_cancelled());
  const Buffer& buffer = request->inputs.at(0).buffers.at(0);
  EXPECT_EQ(std::count(buffer.data, buffer.data + buffer.bytes, std::byte{'t'}), 5000);
}

TEST(GrpcStatus, CodesAreTritons) {
  const std::pair<Code, grpc::StatusCode> codes[] = {
      {Code::kUnknown, grpc::StatusCode::UNKNOWN},
      {Code::kInternal, grpc::StatusCode::INTERNAL},
      {Code::kNotFound, grpc::StatusCode::NOT_FOUND},
      {Code::kInvalidArgument, grpc::StatusCode::INVALID_ARGUMENT},
      {Code::kUnavailable, grpc::StatusCode::UNAVAILABLE},
      {Code::kUnsupported, grpc::StatusCode::UNIMPLEMENTED},
      {Code::kAlreadyExists, grpc::StatusCode::ALREADY_EXISTS},
      {Code::kCancelled, grpc::StatusCode::CANCELLED}};
  for (const auto& [code, expected] : codes) {
    EXPECT_EQ(to_status(Error(code, "words")).error_code(), expected);
    EXPECT_EQ(to_status(Error(code, "words")).error_message(), "words");
  }
}

}  // namespace
}  // namespace anymps::server
