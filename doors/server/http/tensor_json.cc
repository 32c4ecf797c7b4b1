// SPDX-License-Identifier: Apache-2.0
#include "server/http/tensor_json.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "server/http/json_writer.h"
#include "serving/datatype.h"

namespace server::http {
namespace {

[[noreturn]] void wrong_shape() {
  throw Error(Code::kInternal,
              "Unable to parse 'data': Shape does not match true shape of 'data' field");
}

template <class T>
T read_one(JsonReader& reader, std::string_view name) {
  if constexpr (std::is_same_v<T, bool>) {
    return reader.boolean();
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(reader.real());
  } else if constexpr (std::is_signed_v<T>) {
    const int64_t value = reader.signed_integer();
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
      throw Error(Code::kInvalidArgument, "value " + std::to_string(value) +
                                              " is out of range for input " + std::string(name));
    return static_cast<T>(value);
  } else {
    const uint64_t value = reader.unsigned_integer();
    if (value > std::numeric_limits<T>::max())
      throw Error(Code::kInvalidArgument, "value " + std::to_string(value) +
                                              " is out of range for input " + std::string(name));
    return static_cast<T>(value);
  }
}

// Calls `element` for each element of a value, whatever its nesting.
template <class Element>
void flatten(JsonReader& reader, Element&& element) {
  if (reader.peek() == JsonReader::Kind::kArray)
    reader.array([&] { flatten(reader, element); });
  else
    element();
}

template <class Element>
size_t flatten_outer(JsonReader& reader, Element&& element) {
  if (reader.peek() != JsonReader::Kind::kArray) {
    element();
    return 1;
  }
  size_t outer = 0;
  reader.array([&] {
    ++outer;
    flatten(reader, element);
  });
  return outer;
}

template <class T>
JsonElements read_as(JsonReader& reader, std::string_view name, std::optional<size_t> expected) {
  // std::vector<bool> is packed; bools are bytes here.
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  // An element and what separates it from the next take two characters at least.
  const size_t possible = reader.remaining() / 2 + 1;
  if (expected && *expected > possible) wrong_shape();
  auto values = std::make_shared<std::vector<Stored>>();
  if (expected) values->reserve(*expected);
  const size_t outer = flatten_outer(reader, [&] {
    if (expected && values->size() == *expected) wrong_shape();
    values->push_back(static_cast<Stored>(read_one<T>(reader, name)));
  });
  JsonElements result;
  result.count = values->size();
  result.outer = outer;
  result.data.data = reinterpret_cast<std::byte*>(values->data());
  result.data.bytes = values->size() * sizeof(Stored);
  result.data.owner = std::move(values);
  return result;
}

JsonElements read_strings(JsonReader& reader) {
  auto bytes = std::make_shared<std::string>();
  std::string store;
  JsonElements result;
  result.outer = flatten_outer(reader, [&] {
    const std::string_view text = reader.string(store);
    if (text.size() > std::numeric_limits<uint32_t>::max())
      throw Error(Code::kInvalidArgument, "a string of an input is too long");
    const uint32_t length = static_cast<uint32_t>(text.size());
    bytes->append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
    ++result.count;
  });
  result.data.data = reinterpret_cast<std::byte*>(bytes->data());
  result.data.bytes = bytes->size();
  result.data.owner = std::move(bytes);
  return result;
}

template <class T>
void append_as(std::string& out, const std::byte* data, size_t count) {
  out.reserve(out.size() + count * (std::is_floating_point_v<T> ? 12 : 4));
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    if (i > 0) out.push_back(',');
    if constexpr (std::is_floating_point_v<T>)
      append_json(out, static_cast<double>(value));
    else if constexpr (std::is_signed_v<T>)
      append_json(out, static_cast<int64_t>(value));
    else
      append_json(out, static_cast<uint64_t>(value));
  }
}

[[noreturn]] void wrong_size(const OutputTensor& tensor) {
  throw Error(Code::kInternal,
              "output tensor shape does not match size of output for '" + tensor.name + "'");
}

void append_strings(std::string& out, const OutputTensor& tensor, size_t count) {
  const std::byte* at = tensor.data.data;
  size_t left = tensor.data.bytes;
  for (size_t i = 0; i < count; ++i) {
    uint32_t length = 0;
    if (left < sizeof length) wrong_size(tensor);
    std::memcpy(&length, at, sizeof length);
    at += sizeof length;
    left -= sizeof length;
    if (left < length) wrong_size(tensor);
    if (i > 0) out.push_back(',');
    append_json(out, std::string_view(reinterpret_cast<const char*>(at), length));
    at += length;
    left -= length;
  }
}

}  // namespace

JsonElements read_elements(JsonReader& reader, std::string_view name, amps_dtype dtype,
                           std::optional<size_t> expected) try {
  switch (dtype) {
    case AMPS_BOOL:
      return read_as<bool>(reader, name, expected);
    case AMPS_U8:
      return read_as<uint8_t>(reader, name, expected);
    case AMPS_U16:
      return read_as<uint16_t>(reader, name, expected);
    case AMPS_U32:
      return read_as<uint32_t>(reader, name, expected);
    case AMPS_U64:
      return read_as<uint64_t>(reader, name, expected);
    case AMPS_I8:
      return read_as<int8_t>(reader, name, expected);
    case AMPS_I16:
      return read_as<int16_t>(reader, name, expected);
    case AMPS_I32:
      return read_as<int32_t>(reader, name, expected);
    case AMPS_I64:
      return read_as<int64_t>(reader, name, expected);
    case AMPS_F32:
      return read_as<float>(reader, name, expected);
    case AMPS_F64:
      return read_as<double>(reader, name, expected);
    case AMPS_STRING:
      return read_strings(reader);
    default:
      throw Error(Code::kInvalidArgument,
                  "receiving " + std::string(serving::datatype_name(dtype)) +
                      " data via JSON is not supported. Please use the binary data format for "
                      "input " +
                      std::string(name));
  }
} catch (const Error& error) {
  const std::string_view what = error.what();
  if (!what.starts_with("attempt to")) throw;
  throw Error(error.code(), (dtype == AMPS_STRING ? "Unable to parse JSON bytes array: "
                                                  : "Unable to parse 'data': ") +
                                std::string(what));
}

void append_elements(std::string& out, const OutputTensor& tensor) {
  const std::optional<int64_t> count = serving::element_count(tensor.shape);
  if (!count) wrong_size(tensor);
  const size_t n = static_cast<size_t>(*count);
  if (tensor.dtype == AMPS_F16 || tensor.dtype == AMPS_BF16)
    throw Error(Code::kInvalidArgument,
                "sending " + std::string(serving::datatype_name(tensor.dtype)) +
                    " data via JSON is not supported. Please use the binary data format for "
                    "output");
  if (tensor.dtype != AMPS_STRING &&
      serving::byte_count(tensor.dtype, tensor.shape) != tensor.data.bytes)
    wrong_size(tensor);
  const std::byte* data = tensor.data.data;
  out.push_back('[');
  switch (tensor.dtype) {
    case AMPS_BOOL:
      for (size_t i = 0; i < n; ++i) {
        if (i > 0) out.push_back(',');
        out.append(data[i] == std::byte{0} ? "false" : "true");
      }
      break;
    case AMPS_U8:
      append_as<uint8_t>(out, data, n);
      break;
    case AMPS_U16:
      append_as<uint16_t>(out, data, n);
      break;
    case AMPS_U32:
      append_as<uint32_t>(out, data, n);
      break;
    case AMPS_U64:
      append_as<uint64_t>(out, data, n);
      break;
    case AMPS_I8:
      append_as<int8_t>(out, data, n);
      break;
    case AMPS_I16:
      append_as<int16_t>(out, data, n);
      break;
    case AMPS_I32:
      append_as<int32_t>(out, data, n);
      break;
    case AMPS_I64:
      append_as<int64_t>(out, data, n);
      break;
    case AMPS_F32:
      append_as<float>(out, data, n);
      break;
    case AMPS_F64:
      append_as<double>(out, data, n);
      break;
    case AMPS_STRING:
      append_strings(out, tensor, n);
      break;
    default:
      throw Error(Code::kInvalidArgument, "Invalid data type for output tensor");
  }
  out.push_back(']');
}

}  // namespace server::http
