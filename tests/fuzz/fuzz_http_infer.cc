// SPDX-License-Identifier: Apache-2.0
// The HTTP side of the server: any bytes are a request with a body, whose tensors are looked at to
// the last byte, or an error. The first byte chooses what is read.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "server/http/base64.h"
#include "server/http/generate.h"
#include "server/http/infer_codec.h"
#include "server/http/routes.h"
#include "server/http/transport/compression.h"
#include "server/http/transport/message.h"
#include "serving/datatype.h"

namespace {

using namespace anymps::server::http;
using namespace anymps::server;

constexpr size_t kLimit = 1 << 20;

// Every byte that the core could touch.
size_t touch(const Request& request) {
  size_t sum = 0;
  for (const InputTensor& input : request.inputs)
    for (const Buffer& buffer : input.buffers)
      for (size_t i = 0; i < buffer.bytes; ++i) sum += static_cast<size_t>(buffer.data[i]);
  return sum;
}

Buffer region(const std::string&, uint64_t offset, uint64_t bytes) {
  static std::string memory(4096, 'm');
  if (offset > memory.size() || bytes > memory.size() - offset)
    throw Error(Code::kInvalidArgument, "outside");
  return {nullptr, reinterpret_cast<std::byte*>(memory.data() + offset), bytes};
}

// What was read goes back as outputs, in both forms.
void answer(const Request& request, const ReplyForm& form, bool generate) {
  Response response;
  response.model = request.model;
  response.id = request.id;
  response.parameters = request.parameters;
  for (const InputTensor& input : request.inputs)
    if (!input.buffers.empty())
      response.outputs.push_back({input.name, input.dtype, input.shape, input.buffers[0]});
  if (generate)
    encode_generate(response);
  else
    encode_infer(response, form);
}

void infer(const Buffer& body, size_t json_bytes) {
  Request request;
  const ReplyForm form = decode_infer(body, json_bytes, region, request);
  touch(request);
  answer(request, form, false);
}

void generate(const Buffer& body) {
  static const std::vector<TensorInfo> inputs = {{"F", AMPS_F32, {-1, 2, -1}},
                                                 {"I", AMPS_I8, {1}},
                                                 {"T", AMPS_STRING, {-1}},
                                                 {"B", AMPS_BOOL, {2, 2}}};
  Request request;
  decode_generate(body, inputs, request);
  touch(request);
  answer(request, {}, true);
}

void message(std::string_view text) {
  const auto parsed = parse_head(text);
  if (!parsed) return;
  find_route(parsed->first.path);
  std::string body;
  ChunkReader chunks;
  size_t used = parsed->second;
  while (parsed->first.chunked && !chunks.done() && used < text.size())
    used += chunks.feed(text.substr(used, 7), body, kLimit);
  if (body.size() > kLimit || used > text.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  // A copy of its own size, so that a read beyond it is seen.
  const size_t bytes = size - 2;
  std::vector<std::byte> copy(bytes);
  for (size_t i = 0; i < bytes; ++i) copy[i] = static_cast<std::byte>(data[i + 2]);
  const Buffer body{nullptr, copy.data(), bytes};
  const std::string_view text(reinterpret_cast<const char*>(copy.data()), bytes);
  try {
    switch (data[0] % 8) {
      case 0:
        infer(body, bytes);
        break;
      case 1:
        infer(body, bytes - std::min<size_t>(bytes, data[1]));
        break;
      case 2:
        generate(body);
        break;
      case 3:
        message(text);
        break;
      case 4:
        infer(inflate_body(body, Encoding::kGzip, kLimit), data[1]);
        break;
      case 5: {
        Request request;
        const TensorInfo info{"R", data[1] % 2 ? AMPS_F32 : AMPS_STRING, {-1, data[1] % 5, -1}};
        decode_raw(body, {&info, 1}, data[1] % 3 != 0, request);
        touch(request);
        break;
      }
      case 6:
        decode_base64(text);
        preferred_encoding(text);
        break;
      case 7:
        find_route(text);
        break;
    }
  } catch (const Error&) {
  } catch (const BadMessage&) {
  }
  return 0;
}
