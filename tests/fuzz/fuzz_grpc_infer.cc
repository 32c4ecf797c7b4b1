// SPDX-License-Identifier: Apache-2.0
// Any bytes as a ModelInferRequest: they become a request or give an Error, and nothing else ever
// happens. Every byte that the request refers to is read, so that ASan sees one that lies outside;
// then its inputs are sent back as outputs and must arrive as they are.
#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "server/grpc/infer_codec.h"
#include "server/memory/shared_memory.h"

namespace {

using namespace anymps::server;

// A region "r" of 64 bytes.
const SharedMemory& memory() {
  static const SharedMemory* memory = [] {
    const std::string key = "/anymps_fuzz_" + std::to_string(getpid());
    const int file = shm_open(key.c_str(), O_CREAT | O_RDWR, 0600);
    auto* regions = new SharedMemory;
    if (file < 0 || ftruncate(file, 64) != 0) std::abort();
    regions->add("r", key, 0, 64);
    close(file);
    shm_unlink(key.c_str());
    return regions;
  }();
  return *memory;
}

std::string bytes_of(const InputTensor& input) {
  std::string bytes;
  for (const Buffer& buffer : input.buffers)
    bytes.append(reinterpret_cast<const char*>(buffer.data), buffer.bytes);
  return bytes;
}

void expect(bool condition) {
  if (!condition) std::abort();
}

void round_trip(Request& request) {
  const InferTargets targets = targets_of(request);
  Response response;
  response.model = request.model;
  response.id = request.id;
  response.parameters = request.parameters;
  std::vector<std::string> sent;
  for (InputTensor& input : request.inputs) {
    sent.push_back(targets.has(input.name) ? "" : bytes_of(input));
    response.outputs.push_back({input.name, input.dtype, input.shape, input.buffers.at(0)});
  }
  inference::ModelStreamInferResponse message;
  // Strings that are not UTF-8 are refused when they are parsed, not when they are written.
  if (!message.ParseFromString(encode_streamed(std::move(response), targets).flat())) return;
  const inference::ModelInferResponse& inner = message.infer_response();
  expect(inner.model_name() == request.model && inner.id() == request.id);
  expect(static_cast<size_t>(inner.raw_output_contents_size()) == sent.size());
  for (size_t i = 0; i < sent.size(); ++i)
    expect(inner.raw_output_contents(static_cast<int>(i)) == sent[i]);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto message = std::make_shared<inference::ModelInferRequest>();
  if (!message->ParseFromArray(data, static_cast<int>(size))) return 0;
  try {
    const RequestPtr request = decode_infer(std::move(message), memory());
    for (const RequestedOutput& output : request->outputs)
      expect(!output.target.data || output.target.bytes <= 64);
    round_trip(*request);
  } catch (const Error& error) {
    expect(error.code() != Code::kInternal);
  }
  return 0;
}
