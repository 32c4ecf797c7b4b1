// SPDX-License-Identifier: Apache-2.0
#include "server/grpc/typed_contents.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "serving/datatype.h"
#include "serving/string_bytes.h"

namespace anymps::server {
namespace {

using inference::InferTensorContents;
using inference::ModelInferRequest;
using Input = ModelInferRequest::InferInputTensor;
using Message = std::shared_ptr<const ModelInferRequest>;

// The fields by the names that Triton has for them in errors.
struct Kind {
  const char* name;
  int (InferTensorContents::*size)() const;
};
constexpr Kind kKinds[] = {{"BOOL", &InferTensorContents::bool_contents_size},
                           {"INT32", &InferTensorContents::int_contents_size},
                           {"INT64", &InferTensorContents::int64_contents_size},
                           {"UINT32", &InferTensorContents::uint_contents_size},
                           {"UINT64", &InferTensorContents::uint64_contents_size},
                           {"FP32", &InferTensorContents::fp32_contents_size},
                           {"FP64", &InferTensorContents::fp64_contents_size},
                           {"BYTES", &InferTensorContents::bytes_contents_size}};

[[noreturn]] void refuse_type(const Message& message, const Input& input, const char* type) {
  throw Error(Code::kInvalidArgument,
              fmt::format("unexpected explicit tensor data for input tensor '{}' for model '{}' of "
                          "type '{}', expected datatype '{}'",
                          input.name(), message->model_name(), type, input.datatype()));
}

template <typename T>
Buffer in_place(const Message& message, const google::protobuf::RepeatedField<T>& values) {
  return {std::const_pointer_cast<ModelInferRequest>(message),
          const_cast<std::byte*>(reinterpret_cast<const std::byte*>(values.data())),
          values.size() * sizeof(T)};
}

template <typename Narrow, typename Wide>
Buffer narrowed(const Message& message, const Input& input,
                const google::protobuf::RepeatedField<Wide>& values) {
  std::string bytes(values.size() * sizeof(Narrow), '\0');
  char* to = bytes.data();
  for (const Wide value : values) {
    const auto narrow = static_cast<Narrow>(value);
    if (static_cast<Wide>(narrow) != value)
      throw Error(
          Code::kInvalidArgument,
          fmt::format("input tensor '{}' for model '{}' has a value that does not fit {}: {}",
                      input.name(), message->model_name(), input.datatype(), value));
    std::memcpy(to, &narrow, sizeof narrow);
    to += sizeof narrow;
  }
  return own(std::move(bytes));
}

Buffer strings(const Message& message, const Input& input) {
  uint64_t total = 0;
  for (const std::string& text : input.contents().bytes_contents()) total += 4 + text.size();
  std::string bytes;
  bytes.reserve(total);
  for (const std::string& text : input.contents().bytes_contents()) {
    if (text.size() > std::numeric_limits<uint32_t>::max()) refuse_type(message, input, "BYTES");
    serving::append_string(bytes, text);
  }
  return own(std::move(bytes));
}

}  // namespace

Buffer typed_contents(const Message& message, const Input& input, amps_dtype dtype) {
  const InferTensorContents& c = input.contents();
  const auto expect = [&](std::string_view expected) {
    for (const Kind& kind : kKinds)
      if ((c.*kind.size)() > 0 && kind.name != expected) refuse_type(message, input, kind.name);
  };
  switch (dtype) {
    case AMPS_BOOL:
      expect("BOOL");
      return in_place(message, c.bool_contents());
    case AMPS_I8:
      expect("INT32");
      return narrowed<int8_t>(message, input, c.int_contents());
    case AMPS_I16:
      expect("INT32");
      return narrowed<int16_t>(message, input, c.int_contents());
    case AMPS_I32:
      expect("INT32");
      return in_place(message, c.int_contents());
    case AMPS_I64:
      expect("INT64");
      return in_place(message, c.int64_contents());
    case AMPS_U8:
      expect("UINT32");
      return narrowed<uint8_t>(message, input, c.uint_contents());
    case AMPS_U16:
      expect("UINT32");
      return narrowed<uint16_t>(message, input, c.uint_contents());
    case AMPS_U32:
      expect("UINT32");
      return in_place(message, c.uint_contents());
    case AMPS_U64:
      expect("UINT64");
      return in_place(message, c.uint64_contents());
    case AMPS_F32:
      expect("FP32");
      return in_place(message, c.fp32_contents());
    case AMPS_F64:
      expect("FP64");
      return in_place(message, c.fp64_contents());
    case AMPS_STRING:
      expect("BYTES");
      return strings(message, input);
    default:  // half floats have no field of their own
      expect("");
      refuse_type(message, input, "<invalid>");
  }
}

}  // namespace anymps::server
