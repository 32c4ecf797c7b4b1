// SPDX-License-Identifier: Apache-2.0
#include "server/http/generate.h"

#include <algorithm>
#include <map>

#include "server/http/json_reader.h"
#include "server/http/json_writer.h"
#include "server/http/tensor_json.h"
#include "serving/datatype.h"

namespace anymps::server::http {
namespace {

using Kind = JsonReader::Kind;

// The shape of an input that got `count` elements: open extents are 1, except the innermost one,
// which takes what the known ones leave.
std::vector<int64_t> fit_shape(const TensorInfo& info, int64_t count) {
  const auto unfit = [&] {
    return Error(Code::kInvalidArgument, "The schema can not convert input '" + info.name +
                                             "' to tensor with proper shape");
  };
  std::vector<int64_t> shape = info.shape;
  int64_t left = count;
  for (const int64_t extent : shape) {
    if (extent < 0) continue;
    if (extent == 0 || left % extent != 0) throw unfit();
    left /= extent;
  }
  for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) {
    if (*extent >= 0) continue;
    *extent = left;
    left = 1;
  }
  if (left != 1) throw unfit();
  return shape;
}

class GenerateDecoder {
 public:
  GenerateDecoder(const Buffer& body, std::span<const TensorInfo> inputs, Request& request)
      : reader_({reinterpret_cast<const char*>(body.data), body.bytes}),
        inputs_(inputs),
        request_(request) {}

  void run() {
    if (reader_.peek() != Kind::kObject)
      throw Error(Code::kInternal, "attempt to get members for non-object");
    reader_.object([&](std::string_view key) { member(key, true); });
    reader_.end();
  }

 private:
  void member(std::string_view key, bool outside) {
    const auto info = std::find_if(inputs_.begin(), inputs_.end(),
                                   [&](const TensorInfo& input) { return input.name == key; });
    if (outside && key == "parameters") {
      if (info != inputs_.end())
        throw Error(Code::kInvalidArgument,
                    "Keyword 'parameters' for nested schema also given as input tensor name");
      if (reader_.peek() != Kind::kObject)
        throw Error(Code::kInternal,
                    "Expected JSON object for keyword: 'parameters': attempt to access JSON "
                    "non-object as object");
      reader_.object([&](std::string_view inner) { member(inner, false); });
    } else if (info != inputs_.end()) {
      input(*info);
    } else if (outside && key == "id") {
      if (reader_.peek() != Kind::kString)
        throw Error(Code::kInternal,
                    "Unable to parse 'id': attempt to access JSON non-string as string");
      request_.id = reader_.string();
    } else {
      std::string name(key);
      Parameter value = read_parameter(reader_, name);
      request_.parameters.insert_or_assign(std::move(name), std::move(value));
    }
  }

  void input(const TensorInfo& info) {
    for (const InputTensor& other : request_.inputs)
      if (other.name == info.name)
        throw Error(Code::kInvalidArgument, request_prefix(request_) + "input '" + info.name +
                                                "' already exists in request");
    JsonElements elements = read_elements(reader_, info.name, info.dtype, std::nullopt);
    if (elements.count != elements.outer)
      throw Error(Code::kInternal,
                  "Unable to parse 'data': Shape does not match true shape of 'data' field");
    request_.inputs.push_back(
        {info.name, info.dtype, fit_shape(info, elements.count), {std::move(elements.data)}});
  }

  JsonReader reader_;
  std::span<const TensorInfo> inputs_;
  Request& request_;
};

}  // namespace

void decode_generate(const Buffer& body, std::span<const TensorInfo> inputs, Request& request) {
  GenerateDecoder(body, inputs, request).run();
}

std::string encode_generate(const Response& response) {
  std::map<std::string_view, std::string> members;
  const auto add_text = [&](std::string_view name, const std::string& text) {
    std::string json;
    append_json(json, std::string_view(text));
    members.emplace(name, std::move(json));
  };
  if (!response.id.empty()) add_text("id", response.id);
  add_text("model_name", response.model);
  add_text("model_version", response.version);
  for (const auto& [name, value] : response.parameters) {
    std::string json;
    append_json(json, value);
    members.emplace(name, std::move(json));
  }
  for (const OutputTensor& output : response.outputs) {
    std::string json;
    append_elements(json, output);
    if (serving::element_count(output.shape) == 1) json = json.substr(1, json.size() - 2);
    members.emplace(output.name, std::move(json));
  }
  std::string out;
  for (const auto& [name, json] : members) {
    out.push_back(out.empty() ? '{' : ',');
    append_json(out, name);
    out.append(":").append(json);
  }
  out.push_back('}');
  return out;
}

}  // namespace anymps::server::http
