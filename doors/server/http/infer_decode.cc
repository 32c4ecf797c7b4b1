// SPDX-License-Identifier: Apache-2.0
#include "server/http/infer_codec.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "server/http/json_reader.h"
#include "server/http/json_writer.h"
#include "server/http/tensor_json.h"
#include "serving/datatype.h"

namespace anymps::server::http {
namespace {

using Kind = JsonReader::Kind;

// Runs `read`; what Triton's reader would say goes behind "Unable to parse 'FIELD': ".
template <class Read>
auto parse(std::string_view field, Read&& read) try {
  return read();
} catch (const Error& error) {
  const std::string_view what = error.what();
  if (!what.starts_with("attempt to")) throw;
  throw Error(error.code(), std::string("Unable to ")
                                .append(field == "classification" ? "set '" : "parse '")
                                .append(field)
                                .append("': ")
                                .append(what));
}

[[noreturn]] void missing(const std::string& field) {
  throw Error(Code::kInternal, "Unable to parse '" + field +
                                   "': attempt to access non-existing object member '" + field +
                                   "'");
}

// The parameters of a tensor that the protocol knows.
struct TensorParameters {
  std::optional<uint64_t> binary_bytes, classes;
  std::optional<bool> binary;
  std::optional<std::string> region;
  uint64_t offset = 0, bytes = 0;
};

void read_tensor_parameters(JsonReader& reader, TensorParameters& into) {
  if (reader.peek() != Kind::kObject) return reader.skip();
  reader.object([&](std::string_view key) {
    if (key == "binary_data_size")
      into.binary_bytes = parse(key, [&] { return reader.unsigned_integer(); });
    else if (key == "classification")
      into.classes = parse(key, [&] { return reader.unsigned_integer(); });
    else if (key == "binary_data")
      into.binary = parse(key, [&] { return reader.boolean(); });
    else if (key == "shared_memory_region")
      into.region = parse(key, [&] { return reader.string(); });
    else if (key == "shared_memory_offset")
      into.offset = parse(key, [&] { return reader.unsigned_integer(); });
    else if (key == "shared_memory_byte_size")
      into.bytes = parse(key, [&] { return reader.unsigned_integer(); });
    else
      reader.skip();
  });
}

class InferDecoder {
 public:
  InferDecoder(const Buffer& body, size_t json_bytes, const FindRegion& find_region,
               Request& request)
      : reader_({reinterpret_cast<const char*>(body.data), json_bytes}),
        body_(body),
        binary_at_(json_bytes),
        find_region_(find_region),
        request_(request) {}

  ReplyForm run() {
    bool has_inputs = false;
    if (reader_.peek() != Kind::kObject) {
      reader_.skip();
    } else {
      reader_.object([&](std::string_view key) {
        if (key == "id") {
          request_.id = parse(key, [&] { return reader_.string(); });
        } else if (key == "parameters") {
          parameters();
        } else if (key == "inputs") {
          has_inputs = true;
          list(key, [&] { input(); });
        } else if (key == "outputs") {
          list(key, [&] { output(); });
        } else {
          reader_.skip();
        }
      });
    }
    reader_.end();
    if (!has_inputs) missing("inputs");
    // Now that the JSON is known to be well-formed: the rest of the body, in the order of inputs.
    for (const auto& [input, bytes] : binary_) take_binary(request_.inputs[input], bytes);
    if (binary_at_ != body_.bytes)
      throw Error(Code::kInvalidArgument,
                  "unexpected additional input data for model '" + request_.model + "'");
    return std::move(form_);
  }

 private:
  template <class Each>
  void list(std::string_view field, Each&& each) {
    if (reader_.peek() != Kind::kArray)
      parse(field, [&] { reader_.array([] {}); });  // says what is wrong
    reader_.array(each);
  }

  void parameters() {
    if (reader_.peek() != Kind::kObject)
      throw Error(Code::kInternal,
                  "failed to get request params.: attempt to get members for non-object");
    reader_.object([&](std::string_view key) {
      if (key == "sequence_id") {
        if (reader_.peek() == Kind::kNumber) {
          const JsonReader::Number id = reader_.number();
          if (id.form != JsonReader::Number::Form::kUnsigned)
            throw Error(
                Code::kInternal,
                "Unable to parse 'sequence_id': attempt to access JSON non-string as string");
          request_.sequence = id.integer;
        } else {
          request_.sequence = parse(key, [&] { return reader_.string(); });
        }
      } else if (key == "sequence_start") {
        request_.sequence_start = parse(key, [&] { return reader_.boolean(); });
      } else if (key == "sequence_end") {
        request_.sequence_end = parse(key, [&] { return reader_.boolean(); });
      } else if (key == "priority") {
        request_.priority = parse(key, [&] { return reader_.unsigned_integer(); });
      } else if (key == "timeout") {
        request_.timeout_us = parse(key, [&] { return reader_.unsigned_integer(); });
      } else if (key == "binary_data_output") {
        form_.others = parse(key, [&] { return reader_.boolean(); }) ? OutputForm::Kind::kBinary
                                                                     : OutputForm::Kind::kJson;
      } else if (key.starts_with("triton_")) {
        throw Error(Code::kInvalidArgument,
                    "parameter keys starting with 'triton_' are reserved for Triton usage and "
                    "should not be specified.");
      } else {
        std::string name(key);
        Parameter value = read_parameter(reader_, name);
        request_.parameters.insert_or_assign(std::move(name), std::move(value));
      }
    });
  }

  void input() {
    std::optional<std::string> name, datatype;
    std::optional<std::vector<int64_t>> shape;
    std::optional<amps_dtype> dtype;
    std::optional<size_t> data_at;  // seen before its type: read when the object is complete
    std::optional<JsonElements> elements;
    TensorParameters parameters;
    if (reader_.peek() != Kind::kObject) {
      reader_.skip();
    } else {
      reader_.object([&](std::string_view key) {
        if (key == "name") {
          name = parse(key, [&] { return reader_.string(); });
        } else if (key == "datatype") {
          datatype = parse(key, [&] { return reader_.string(); });
          dtype = serving::parse_datatype(*datatype);
        } else if (key == "shape") {
          shape = read_shape();
        } else if (key == "parameters") {
          read_tensor_parameters(reader_, parameters);
        } else if (key == "data" && !data_at) {
          reader_.peek();
          data_at = reader_.position();
          if (dtype && name && shape)
            elements = read_data(*name, *dtype, *shape);
          else
            reader_.skip();
        } else {
          reader_.skip();
        }
      });
    }
    check_content(data_at.has_value(), parameters);
    if (!name) missing("name");
    if (!datatype) missing("datatype");
    if (!shape) missing("shape");
    if (!dtype) throw Error(Code::kInvalidArgument, "invalid datatype for input " + *name);
    InputTensor tensor{std::move(*name), *dtype, std::move(*shape), {}};
    for (const InputTensor& other : request_.inputs)
      if (other.name == tensor.name)
        throw Error(Code::kInvalidArgument, request_prefix(request_) + "input '" + tensor.name +
                                                "' already exists in request");
    if (parameters.binary_bytes) {
      binary_.emplace_back(request_.inputs.size(), *parameters.binary_bytes);
    } else if (parameters.region) {
      tensor.buffers.push_back(
          find_region_(*parameters.region, parameters.offset, parameters.bytes));
    } else {
      if (!elements) {
        const size_t after = reader_.position();
        reader_.rewind(*data_at);
        elements = read_data(tensor.name, tensor.dtype, tensor.shape);
        reader_.rewind(after);
      }
      tensor.buffers.push_back(std::move(elements->data));
    }
    request_.inputs.push_back(std::move(tensor));
  }

  std::vector<int64_t> read_shape() {
    std::vector<int64_t> shape;
    parse("shape", [&] {
      reader_.array([&] {
        const uint64_t extent = reader_.unsigned_integer();
        if (extent > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
          throw Error(Code::kInvalidArgument, "Unable to parse 'shape': an extent is too large");
        shape.push_back(static_cast<int64_t>(extent));
      });
    });
    return shape;
  }

  JsonElements read_data(const std::string& name, amps_dtype dtype,
                         const std::vector<int64_t>& shape) {
    const std::optional<int64_t> count = serving::element_count(shape);
    if (!count)
      throw Error(Code::kInvalidArgument,
                  "shape " + serving::shape_text(shape) + " of input '" + name + "' is too large");
    if (*count == 0) {
      reader_.skip();
      return {};
    }
    if (reader_.peek() != Kind::kArray)
      throw Error(Code::kInternal,
                  "Unable to parse 'data': attempt to access JSON non-array as array");
    const std::optional<size_t> expected =
        dtype == AMPS_STRING ? std::nullopt : std::optional<size_t>(*count);
    JsonElements elements = read_elements(reader_, name, dtype, expected);
    if (expected && elements.count != *expected)
      throw Error(Code::kInternal,
                  "Unable to parse 'data': Shape does not match true shape of 'data' field");
    return elements;
  }

  static void check_content(bool data, const TensorParameters& parameters) {
    const bool binary = parameters.binary_bytes.has_value(), region = parameters.region.has_value();
    if (data + binary + region == 1) return;
    std::string what =
        "Input must set only one of the following fields: 'data', 'binary_data_size' in "
        "'parameters', 'shared_memory_region' in 'parameters'. But";
    if (!data && !binary && !region)
      what += " no field is set";
    else
      what.append(" set")
          .append(data ? " 'data'" : "")
          .append(binary ? " 'binary_data_size'" : "")
          .append(region ? " 'shared_memory_region'" : "");
    throw Error(Code::kInvalidArgument, what);
  }

  void take_binary(InputTensor& tensor, uint64_t bytes) {
    const size_t left = body_.bytes - binary_at_;
    if (bytes > left)
      throw Error(Code::kInvalidArgument, "unexpected size for input '" + tensor.name +
                                              "', expecting " + std::to_string(bytes - left) +
                                              " additional bytes for model '" + request_.model +
                                              "'");
    tensor.buffers.push_back({body_.owner, body_.data + binary_at_, bytes});
    binary_at_ += bytes;
  }

  void output() {
    std::optional<std::string> name;
    TensorParameters parameters;
    if (reader_.peek() != Kind::kObject) {
      reader_.skip();
    } else {
      reader_.object([&](std::string_view key) {
        if (key == "name")
          name = parse(key, [&] { return reader_.string(); });
        else if (key == "parameters")
          read_tensor_parameters(reader_, parameters);
        else
          reader_.skip();
      });
    }
    if (parameters.region && parameters.classes)
      throw Error(Code::kInvalidArgument,
                  "Output can't set both 'shared_memory_region' and 'classification'");
    if (parameters.region && parameters.binary.value_or(false))
      throw Error(Code::kInvalidArgument,
                  "Output can't set both 'shared_memory_region' and 'binary_data'");
    if (!name) missing("name");
    for (const RequestedOutput& other : request_.outputs)
      if (other.name == *name) return;  // the first one counts
    RequestedOutput wish{*name, 0, {}};
    OutputForm form{OutputForm::Kind::kJson, *name};
    if (parameters.region) {
      wish.target = find_region_(*parameters.region, parameters.offset, parameters.bytes);
      form.kind = OutputForm::Kind::kSharedMemory;
    } else if (parameters.binary.value_or(false)) {
      form.kind = OutputForm::Kind::kBinary;
    }
    wish.classes = static_cast<uint32_t>(
        std::min<uint64_t>(parameters.classes.value_or(0), std::numeric_limits<uint32_t>::max()));
    request_.outputs.push_back(std::move(wish));
    form_.outputs.push_back(std::move(form));
  }

  JsonReader reader_;
  const Buffer& body_;
  size_t binary_at_;
  std::vector<std::pair<size_t, uint64_t>> binary_;  // inputs whose data is behind the JSON
  const FindRegion& find_region_;
  Request& request_;
  ReplyForm form_;
};

}  // namespace

ReplyForm decode_infer(const Buffer& body, size_t json_bytes, const FindRegion& find_region,
                       Request& request) {
  if (json_bytes > body.bytes)
    throw Error(Code::kInvalidArgument, "unexpected size for request JSON, expecting " +
                                            std::to_string(json_bytes - body.bytes) +
                                            " more bytes");
  return InferDecoder(body, json_bytes, find_region, request).run();
}

}  // namespace anymps::server::http
