// SPDX-License-Identifier: Apache-2.0
#include "server/grpc/typed_contents.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "serving/datatype.h"
#include "serving/string_bytes.h"

namespace anymps::server {
namespace {

using google::protobuf::RepeatedField;
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

// The elements of one input. Those of other fields than the one named are an error.
class Contents {
 public:
  Contents(const Message& message, const Input& input) : message_(message), input_(input) {}

  template <typename T>
  Buffer in_place(const char* field, const RepeatedField<T>& values) const {
    expect(field);
    return {std::const_pointer_cast<ModelInferRequest>(message_),
            const_cast<std::byte*>(reinterpret_cast<const std::byte*>(values.data())),
            values.size() * sizeof(T)};
  }

  template <typename Narrow, typename Wide>
  Buffer narrowed(const char* field, const RepeatedField<Wide>& values) const {
    expect(field);
    std::string bytes(values.size() * sizeof(Narrow), '\0');
    char* to = bytes.data();
    for (const Wide value : values) {
      const auto narrow = static_cast<Narrow>(value);
      if (static_cast<Wide>(narrow) != value)
        throw Error(
            Code::kInvalidArgument,
            fmt::format("input tensor '{}' for model '{}' has a value that does not fit {}: {}",
                        input_.name(), message_->model_name(), input_.datatype(), value));
      std::memcpy(to, &narrow, sizeof narrow);
      to += sizeof narrow;
    }
    return own(std::move(bytes));
  }

  Buffer strings() const {
    expect("BYTES");
    const auto& texts = input_.contents().bytes_contents();
    uint64_t total = 0;
    for (const std::string& text : texts) total += 4 + text.size();
    std::string bytes;
    bytes.reserve(total);
    for (const std::string& text : texts) {
      if (text.size() > std::numeric_limits<uint32_t>::max()) refuse("BYTES");
      serving::append_string(bytes, text);
    }
    return own(std::move(bytes));
  }

  void expect(std::string_view field) const {
    for (const Kind& kind : kKinds)
      if ((input_.contents().*kind.size)() > 0 && kind.name != field) refuse(kind.name);
  }

  [[noreturn]] void refuse(const char* type) const {
    throw Error(Code::kInvalidArgument,
                fmt::format("unexpected explicit tensor data for input tensor '{}' for model '{}' "
                            "of type '{}', expected datatype '{}'",
                            input_.name(), message_->model_name(), type, input_.datatype()));
  }

 private:
  const Message& message_;
  const Input& input_;
};

}  // namespace

Buffer typed_contents(const Message& message, const Input& input, amps_dtype dtype) {
  const InferTensorContents& c = input.contents();
  const Contents contents(message, input);
  switch (dtype) {
    case AMPS_BOOL:
      return contents.in_place("BOOL", c.bool_contents());
    case AMPS_I8:
      return contents.narrowed<int8_t>("INT32", c.int_contents());
    case AMPS_I16:
      return contents.narrowed<int16_t>("INT32", c.int_contents());
    case AMPS_I32:
      return contents.in_place("INT32", c.int_contents());
    case AMPS_I64:
      return contents.in_place("INT64", c.int64_contents());
    case AMPS_U8:
      return contents.narrowed<uint8_t>("UINT32", c.uint_contents());
    case AMPS_U16:
      return contents.narrowed<uint16_t>("UINT32", c.uint_contents());
    case AMPS_U32:
      return contents.in_place("UINT32", c.uint_contents());
    case AMPS_U64:
      return contents.in_place("UINT64", c.uint64_contents());
    case AMPS_F32:
      return contents.in_place("FP32", c.fp32_contents());
    case AMPS_F64:
      return contents.in_place("FP64", c.fp64_contents());
    case AMPS_STRING:
      return contents.strings();
    default:  // half floats have no field of their own
      contents.expect("");
      contents.refuse("<invalid>");
  }
}

}  // namespace anymps::server
