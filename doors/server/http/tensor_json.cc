// SPDX-License-Identifier: Apache-2.0
#include "server/http/tensor_json.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "server/http/json_writer.h"
#include "serving/datatype.h"
#include "serving/string_bytes.h"

namespace anymps::server::http {
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
  std::string bytes, store;
  JsonElements result;
  result.outer = flatten_outer(reader, [&] {
    const std::string_view text = reader.string(store);
    if (text.size() > std::numeric_limits<uint32_t>::max())
      throw Error(Code::kInvalidArgument, "a string of an input is too long");
    serving::append_string(bytes, text);
    ++result.count;
  });
  result.data = own(std::move(bytes));
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
  std::string_view left(reinterpret_cast<const char*>(tensor.data.data), tensor.data.bytes);
  for (size_t i = 0; i < count; ++i) {
    const std::optional<std::string_view> text = serving::take_string(left);
    if (!text) wrong_size(tensor);
    if (i > 0) out.push_back(',');
    append_json(out, *text);
  }
}

}  // namespace

JsonElements read_elements(JsonReader& reader, std::string_view name, amps_dtype dtype,
                           std::optional<size_t> expected) try {
  if (dtype == AMPS_BOOL) return read_as<bool>(reader, name, expected);
  if (dtype == AMPS_STRING) return read_strings(reader);
  JsonElements elements;
  const bool known = serving::with_number_type(
      dtype, [&]<typename T>() { elements = read_as<T>(reader, name, expected); });
  if (!known)
    throw Error(Code::kInvalidArgument,
                "receiving " + std::string(serving::datatype_name(dtype)) +
                    " data via JSON is not supported. Please use the binary data format for "
                    "input " +
                    std::string(name));
  return elements;
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
  const size_t n = *count;
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
  if (tensor.dtype == AMPS_BOOL) {
    for (size_t i = 0; i < n; ++i) {
      if (i > 0) out.push_back(',');
      out.append(data[i] == std::byte{0} ? "false" : "true");
    }
  } else if (tensor.dtype == AMPS_STRING) {
    append_strings(out, tensor, n);
  } else if (!serving::with_number_type(tensor.dtype,
                                        [&]<typename T>() { append_as<T>(out, data, n); })) {
    throw Error(Code::kInvalidArgument, "Invalid data type for output tensor");
  }
  out.push_back(']');
}

}  // namespace anymps::server::http
