// SPDX-License-Identifier: Apache-2.0
#include "server/http/infer_codec.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "server/http/json_reader.h"
#include "server/http/json_writer.h"
#include "server/http/tensor_json.h"
#include "serving/datatype.h"

namespace anymps::server::http {

OutputForm::Kind ReplyForm::of(std::string_view output) const {
  for (const OutputForm& form : outputs)
    if (form.name == output) return form.kind;
  return others;
}

Parameter read_parameter(JsonReader& reader, std::string_view name) {
  using Kind = JsonReader::Kind;
  switch (reader.peek()) {
    case Kind::kString:
      return reader.string();
    case Kind::kBool:
      return reader.boolean();
    case Kind::kNumber: {
      const JsonReader::Number value = reader.number();
      if (value.form == JsonReader::Number::Form::kDouble) return value.real;
      if (value.form == JsonReader::Number::Form::kNegative ||
          value.integer <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        return static_cast<int64_t>(value.integer);
      return value.integer;
    }
    default:
      throw Error(Code::kInvalidArgument,
                  "parameter '" + std::string(name) +
                      "' has invalid type. It should be either 'int', 'bool', or 'string'.");
  }
}

ReplyForm decode_raw(const Buffer& body, std::span<const TensorInfo> inputs, bool batched,
                     Request& request) {
  const std::string prefix = request_prefix(request);
  if (inputs.size() != 1)
    throw Error(Code::kInvalidArgument, prefix + "Raw request must only have 1 input (found " +
                                            std::to_string(inputs.size()) +
                                            ") to be deduced but got " +
                                            std::to_string(inputs.size()) + " inputs in '" +
                                            request.model + "' model configuration");
  const TensorInfo& info = inputs.front();
  InputTensor tensor{info.name, info.dtype, info.shape, {body}};
  if (batched && !tensor.shape.empty()) tensor.shape.front() = 1;
  const auto open = [](int64_t extent) { return extent < 0; };
  const auto variable = std::find_if(tensor.shape.begin(), tensor.shape.end(), open);
  if (variable != tensor.shape.end()) {
    if (std::find_if(variable + 1, tensor.shape.end(), open) != tensor.shape.end())
      throw Error(Code::kInvalidArgument,
                  prefix + "The shape of the raw input '" + info.name +
                      "' can not be deduced because there are more than one variable-sized "
                      "dimension");
    if (info.dtype == AMPS_STRING)
      throw Error(Code::kInvalidArgument, prefix + "For BYTE datatype raw input '" + info.name +
                                              "', the model must have input shape [1]");
    *variable = 1;
    const std::optional<size_t> step = serving::byte_count(info.dtype, tensor.shape);
    if (!step || *step == 0 || body.bytes % *step != 0)
      throw Error(Code::kInvalidArgument,
                  prefix + "input byte size mismatch for input 'raw_input' for model '" +
                      request.model + "'. Expected " + std::to_string(step.value_or(0)) + ", got " +
                      std::to_string(body.bytes));
    *variable = body.bytes / *step;
  }
  if (info.dtype == AMPS_STRING) {
    // The body is one string, without a length before it.
    if (serving::element_count(tensor.shape) != 1 ||
        body.bytes > std::numeric_limits<uint32_t>::max())
      throw Error(Code::kInvalidArgument, prefix + "For BYTE datatype raw input '" + info.name +
                                              "', the model must have input shape [1]");
    const uint32_t length = static_cast<uint32_t>(body.bytes);
    tensor.buffers.insert(tensor.buffers.begin(),
                          own({reinterpret_cast<const char*>(&length), sizeof length}));
  }
  request.inputs.push_back(std::move(tensor));
  ReplyForm form;
  form.others = OutputForm::Kind::kBinary;
  return form;
}

EncodedBody encode_infer(const Response& response, const ReplyForm& form) {
  EncodedBody body;
  body.pieces.emplace_back();
  std::string json;
  json.reserve(256);
  json.push_back('{');
  if (!response.id.empty()) {
    json.append("\"id\":");
    append_json(json, std::string_view(response.id));
    json.push_back(',');
  }
  json.append("\"model_name\":");
  append_json(json, std::string_view(response.model));
  json.append(",\"model_version\":");
  append_json(json, std::string_view(response.version));
  if (!response.parameters.empty()) {
    json.append(",\"parameters\":");
    char separator = '{';
    for (const auto& [name, value] : response.parameters) {
      json.push_back(separator);
      append_json(json, std::string_view(name));
      json.push_back(':');
      append_json(json, value);
      separator = ',';
    }
    json.push_back('}');
  }
  json.append(",\"outputs\":[");
  for (const OutputTensor& output : response.outputs) {
    if (&output != &response.outputs.front()) json.push_back(',');
    json.append("{\"name\":");
    append_json(json, std::string_view(output.name));
    json.append(",\"datatype\":\"").append(serving::datatype_name(output.dtype));
    json.append("\",\"shape\":").append(serving::shape_text(output.shape));
    switch (form.of(output.name)) {
      case OutputForm::Kind::kJson:
        json.append(",\"data\":");
        append_elements(json, output);
        break;
      case OutputForm::Kind::kBinary:
        json.append(",\"parameters\":{\"binary_data_size\":");
        append_json(json, static_cast<uint64_t>(output.data.bytes));
        json.push_back('}');
        if (output.data.bytes > 0) body.pieces.push_back(output.data);
        break;
      case OutputForm::Kind::kSharedMemory:
        break;
    }
    json.push_back('}');
  }
  json.append("]}");
  body.json_bytes = json.size();
  body.has_binary = body.pieces.size() > 1;
  body.pieces.front() = own(std::move(json));
  return body;
}

}  // namespace anymps::server::http
