// SPDX-License-Identifier: Apache-2.0
#include "server/http/inference.h"

#include <charconv>
#include <utility>

#include "server/core/server.h"
#include "server/http/generate.h"
#include "server/http/json_writer.h"
#include "server/memory/shared_memory.h"
#include "serving/datatype.h"

namespace anymps::server::http {
namespace {

// Whether this thread is handing a request to the server: what is answered now was refused.
thread_local bool handing_over = false;

void hand_over(Server& server, RequestPtr request) {
  struct Mark {
    Mark() { handing_over = true; }
    ~Mark() { handing_over = false; }
  } const mark;
  server.infer(std::move(request));
}

RequestPtr make_request(const ExchangePtr& exchange, const Route& route) {
  auto request = std::make_unique<Request>();
  request->model = route.model;
  if (!route.version.empty()) {
    const auto [rest, error] = std::from_chars(
        route.version.data(), route.version.data() + route.version.size(), request->version);
    if (error != std::errc())
      throw Error(Code::kInvalidArgument,
                  "failed to get model version from specified version string '" + route.version +
                      "', version should be an integral value > 0");
  }
  request->times.received = exchange->received_ns;
  request->cancelled = std::shared_ptr<std::atomic<bool>>(exchange, &exchange->cancelled);
  request->respond = [exchange](Response&& response) {
    exchange->response = std::move(response);
    exchange->refused = handing_over;
    exchange->mailbox->post(exchange);
  };
  return request;
}

std::vector<TensorInfo> inputs_of(const Server& server, const Route& route) {
  std::vector<TensorInfo> inputs;
  const inference::ModelMetadataResponse metadata =
      server.model_metadata(route.model, route.version);
  for (const auto& input : metadata.inputs()) {
    const std::optional<amps_dtype> dtype = serving::parse_datatype(input.datatype());
    if (!dtype)
      throw Error(Code::kUnsupported,
                  "input '" + input.name() + "' has datatype " + input.datatype());
    inputs.push_back({input.name(), *dtype, {input.shape().begin(), input.shape().end()}});
  }
  return inputs;
}

// How much of the body is JSON: all of it unless a header says otherwise.
size_t json_bytes_of(const Head& head, size_t body_bytes) {
  constexpr std::string_view kHeader = "Inference-Header-Content-Length";
  const std::string* header = head.header(kHeader);
  if (!header) return body_bytes;
  int64_t bytes = 0;
  const auto [rest, error] =
      std::from_chars(header->data(), header->data() + header->size(), bytes);
  if (error == std::errc::invalid_argument || rest != header->data() + header->size())
    throw Error(Code::kInvalidArgument,
                "Unable to parse " + std::string(kHeader) + ", got: " + *header);
  if (error != std::errc() || bytes < 0 || std::cmp_greater(bytes, body_bytes))
    throw Error(Code::kInvalidArgument, "inference header size should be in range (0, " +
                                            std::to_string(body_bytes) + "), got: " + *header);
  return bytes;
}

Reply finish_infer(Exchange& exchange) try {
  const Response& response = exchange.response;
  if (response.error) return error_reply(*response.error);
  EncodedBody body = encode_infer(response, exchange.form);
  Reply reply;
  if (body.has_binary) {
    reply.content_type = "application/octet-stream";
    reply.headers.emplace_back("Inference-Header-Content-Length", std::to_string(body.json_bytes));
  }
  if (exchange.encoding != Encoding::kIdentity) {
    reply.headers.emplace_back("Content-Encoding", encoding_name(exchange.encoding));
    reply.body.push_back(deflate_body(body.pieces, exchange.encoding));
  } else {
    reply.body = std::move(body.pieces);
  }
  return reply;
} catch (const Error& error) {
  return error_reply(error);
}

Reply finish_generate(Exchange& exchange) try {
  if (exchange.response.error) return error_reply(*exchange.response.error);
  Reply reply = text_reply(200, "application/json", encode_generate(exchange.response));
  reply.chunked = true;
  return reply;
} catch (const Error& error) {
  return error_reply(error);
}

Reply finish_generate_stream(Exchange& exchange) {
  if (exchange.refused && exchange.response.error) return error_reply(*exchange.response.error);
  int status = 200;
  std::string json;
  try {
    if (exchange.response.error) throw Error(*exchange.response.error);
    json = encode_generate(exchange.response);
  } catch (const Error& error) {
    status = status_of(error.code());
    json = error_json(error.what());
  }
  Reply reply = text_reply(status, "text/event-stream; charset=utf-8", "data: " + json + "\n\n");
  reply.chunked = true;
  return reply;
}

}  // namespace

void start_infer(Server& server, const ExchangePtr& exchange, const Route& route) {
  const Head& head = exchange->head;
  const std::string* content = head.header("Content-Encoding");
  const std::optional<Encoding> encoding = parse_encoding(content ? *content : "");
  if (!encoding) throw Error(Code::kUnsupported, "Unsupported compression type");
  const Buffer body = inflate_body(std::exchange(exchange->body, {}), *encoding,
                                   server.options().max_request_bytes, &server.held_bytes());
  if (const std::string* accept = head.header("Accept-Encoding"))
    exchange->encoding = preferred_encoding(*accept);
  RequestPtr request = make_request(exchange, route);
  if (const size_t json_bytes = json_bytes_of(head, body.bytes); json_bytes > 0) {
    exchange->form = decode_infer(
        body, json_bytes,
        [&server](const std::string& region, uint64_t offset, uint64_t bytes) {
          return server.shared_memory().buffer(region, offset, bytes);
        },
        *request);
  } else {
    const bool batched = server.model_config(route.model, route.version).max_batch_size() > 0;
    exchange->form = decode_raw(body, inputs_of(server, route), batched, *request);
  }
  exchange->finish = finish_infer;
  hand_over(server, std::move(request));
}

void start_generate(Server& server, const ExchangePtr& exchange, const Route& route, bool stream) {
  const std::string* content = exchange->head.header("Content-Encoding");
  if (parse_encoding(content ? *content : "") != Encoding::kIdentity)
    throw Error(Code::kInvalidArgument,
                "Unsupported content-encoding, only 'identity' is supported.");
  RequestPtr request = make_request(exchange, route);
  decode_generate(std::exchange(exchange->body, {}), inputs_of(server, route), *request);
  exchange->finish = stream ? finish_generate_stream : finish_generate;
  hand_over(server, std::move(request));
}

}  // namespace anymps::server::http
