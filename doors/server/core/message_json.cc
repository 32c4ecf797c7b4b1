// SPDX-License-Identifier: Apache-2.0
// One walk over a message by reflection in each direction.
#include "server/core/message_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "serving/error.h"

namespace anymps::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using nlohmann::json;
using nlohmann::ordered_json;
using serving::Code;
using serving::Error;

constexpr int kMaxJsonDepth = 64;

// The shortest text of a float that reads back as the same float: 0.1, not 0.10000000149011612; 1,
// not 1.0.
ordered_json floating(double value, bool is_float) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  if (value == std::trunc(value) && std::fabs(value) < 0x1p53) return static_cast<int64_t>(value);
  if (!is_float) return value;
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr;
  double shortest = value;
  std::from_chars(text, end, shortest);
  return shortest;
}

ordered_json text_of(const FieldDescriptor& field, std::string value) {
  if (field.type() == FieldDescriptor::TYPE_BYTES)
    throw Error(Code::kUnsupported, "field '" + field.name() + "' has bytes, which have no JSON");
  return value;
}

ordered_json enum_of(const EnumValueDescriptor* value, int number) {
  return value ? ordered_json(value->name()) : ordered_json(number);
}

// The value of a field, or of element `i` of a repeated one (i >= 0).
ordered_json value_of(const Message& m, const FieldDescriptor& f, int i, Defaults defaults) {
  const Reflection& r = *m.GetReflection();
  const bool many = i >= 0;
  switch (f.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return many ? r.GetRepeatedInt32(m, &f, i) : r.GetInt32(m, &f);
    case FieldDescriptor::CPPTYPE_INT64:
      return many ? r.GetRepeatedInt64(m, &f, i) : r.GetInt64(m, &f);
    case FieldDescriptor::CPPTYPE_UINT32:
      return many ? r.GetRepeatedUInt32(m, &f, i) : r.GetUInt32(m, &f);
    case FieldDescriptor::CPPTYPE_UINT64:
      return many ? r.GetRepeatedUInt64(m, &f, i) : r.GetUInt64(m, &f);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return floating(many ? r.GetRepeatedDouble(m, &f, i) : r.GetDouble(m, &f), false);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return floating(many ? r.GetRepeatedFloat(m, &f, i) : r.GetFloat(m, &f), true);
    case FieldDescriptor::CPPTYPE_BOOL:
      return many ? r.GetRepeatedBool(m, &f, i) : r.GetBool(m, &f);
    case FieldDescriptor::CPPTYPE_STRING:
      return text_of(f, many ? r.GetRepeatedString(m, &f, i) : r.GetString(m, &f));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = many ? r.GetRepeatedEnumValue(m, &f, i) : r.GetEnumValue(m, &f);
      return enum_of(f.enum_type()->FindValueByNumber(number), number);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return to_json(many ? r.GetRepeatedMessage(m, &f, i) : r.GetMessage(m, &f), defaults);
  }
  return nullptr;
}

// Entries of a map are messages with a key and a value, in no order: sorted, the text is the same
// each time.
ordered_json map_of(const Message& message, const FieldDescriptor& field, Defaults defaults) {
  json sorted = json::object();
  const Reflection& reflection = *message.GetReflection();
  const FieldDescriptor& key = *field.message_type()->map_key();
  const FieldDescriptor& value = *field.message_type()->map_value();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    const ordered_json name = value_of(entry, key, -1, defaults);
    sorted[name.is_string() ? name.get<std::string>() : name.dump()] =
        value_of(entry, value, -1, defaults);
  }
  return sorted;
}

[[noreturn]] void bad(const std::string& where, const std::string& what) {
  throw Error(Code::kInvalidArgument, where.empty() ? what : where + ": " + what);
}

template <typename T>
T integer(const json& value, const std::string& where) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    if (number <= static_cast<uint64_t>(std::numeric_limits<T>::max()))
      return static_cast<T>(number);
  } else if (value.is_number_integer()) {
    const int64_t number = value.get<int64_t>();
    if (std::is_signed_v<T> ? number >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
                                  number <= static_cast<int64_t>(std::numeric_limits<T>::max())
                            : false)
      return static_cast<T>(number);
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    // 2^63 and 2^64 are doubles, the largest integers are not: compare with < on the next power.
    const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (number == std::floor(number) && number < limit &&
        number >= (std::is_signed_v<T> ? -limit : 0.0))
      return static_cast<T>(number);
  } else if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return number;
  }
  bad(where, "expected an integer in range, got " +
                 value.dump(-1, ' ', false, json::error_handler_t::replace));
}

double real(const json& value, const std::string& where) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return number;
  }
  bad(where, "expected a number");
}

bool boolean(const json& value, const std::string& where) {
  if (value.is_boolean()) return value.get<bool>();
  if (value == "true") return true;
  if (value == "false") return false;
  bad(where, "expected true or false");
}

int enumeration(const FieldDescriptor& field, const json& value, const std::string& where) {
  if (!value.is_string()) return integer<int32_t>(value, where);
  const std::string& name = value.get_ref<const std::string&>();
  const EnumValueDescriptor* found = field.enum_type()->FindValueByName(name);
  if (!found)
    bad(where, "invalid value \"" + name + "\" for type " + field.enum_type()->full_name());
  return found->number();
}

void read(const json& object, Message& message, const std::string& where, int depth);

// Sets a field, or adds an element to a repeated one.
void put(const json& value, Message& m, const FieldDescriptor& f, bool add,
         const std::string& where, int depth) {
  const Reflection& r = *m.GetReflection();
  const auto give = [&](auto set, auto append, const auto& element) {
    add ? (r.*append)(&m, &f, element) : (r.*set)(&m, &f, element);
  };
  switch (f.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return give(&Reflection::SetInt32, &Reflection::AddInt32, integer<int32_t>(value, where));
    case FieldDescriptor::CPPTYPE_INT64:
      return give(&Reflection::SetInt64, &Reflection::AddInt64, integer<int64_t>(value, where));
    case FieldDescriptor::CPPTYPE_UINT32:
      return give(&Reflection::SetUInt32, &Reflection::AddUInt32, integer<uint32_t>(value, where));
    case FieldDescriptor::CPPTYPE_UINT64:
      return give(&Reflection::SetUInt64, &Reflection::AddUInt64, integer<uint64_t>(value, where));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return give(&Reflection::SetDouble, &Reflection::AddDouble, real(value, where));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return give(&Reflection::SetFloat, &Reflection::AddFloat,
                  static_cast<float>(real(value, where)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return give(&Reflection::SetBool, &Reflection::AddBool, boolean(value, where));
    case FieldDescriptor::CPPTYPE_STRING:
      if (!value.is_string() || f.type() == FieldDescriptor::TYPE_BYTES)
        bad(where, "expected a string");
      return give(&Reflection::SetString, &Reflection::AddString, value.get<std::string>());
    case FieldDescriptor::CPPTYPE_ENUM:
      return give(&Reflection::SetEnumValue, &Reflection::AddEnumValue,
                  enumeration(f, value, where));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return read(value, add ? *r.AddMessage(&m, &f) : *r.MutableMessage(&m, &f), where, depth + 1);
  }
}

void put_map(const json& object, Message& message, const FieldDescriptor& field,
             const std::string& where, int depth) {
  if (!object.is_object()) bad(where, "expected an object");
  for (const auto& [key, value] : object.items()) {
    Message& entry = *message.GetReflection()->AddMessage(&message, &field);
    const std::string place = where + "[\"" + key + "\"]";
    put(key, entry, *field.message_type()->map_key(), false, place, depth);
    put(value, entry, *field.message_type()->map_value(), false, place, depth);
  }
}

const FieldDescriptor& find_field(const Descriptor& type, const std::string& name,
                                  const std::string& where) {
  const FieldDescriptor* field = type.FindFieldByName(name);
  if (!field) field = type.FindFieldByCamelcaseName(name);
  if (!field) bad(where + name, "Cannot find field.");
  return *field;
}

void read(const json& object, Message& message, const std::string& where, int depth) {
  if (depth > kMaxJsonDepth) bad(where, "nested too deeply");
  if (!object.is_object()) bad(where, "expected an object");
  const std::string prefix = where.empty() ? "" : where + ".";
  for (const auto& [name, value] : object.items()) {
    const FieldDescriptor& field = find_field(*message.GetDescriptor(), name, prefix);
    const std::string place = prefix + name;
    if (value.is_null()) continue;
    if (field.is_repeated()) message.GetReflection()->ClearField(&message, &field);
    if (field.is_map()) {
      put_map(value, message, field, place, depth);
    } else if (field.is_repeated()) {
      if (!value.is_array()) bad(place, "expected a list");
      for (size_t i = 0; i < value.size(); ++i)
        put(value[i], message, field, true, place + "[" + std::to_string(i) + "]", depth);
    } else {
      put(value, message, field, false, place, depth);
    }
  }
}

}  // namespace

ordered_json to_json(const Message& message, Defaults defaults) {
  ordered_json object = ordered_json::object();
  const Descriptor& type = *message.GetDescriptor();
  const Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_repeated()) {
      const int count = reflection.FieldSize(message, &field);
      if (count == 0 && defaults == Defaults::kOmit) continue;
      if (field.is_map()) {
        object[field.name()] = map_of(message, field, defaults);
        continue;
      }
      ordered_json list = ordered_json::array();
      for (int k = 0; k < count; ++k) list.push_back(value_of(message, field, k, defaults));
      object[field.name()] = std::move(list);
    } else if (reflection.HasField(message, &field) ||
               (defaults == Defaults::kPrint && !field.has_presence())) {
      object[field.name()] = value_of(message, field, -1, defaults);
    }
  }
  return object;
}

void from_json(const json& json, Message& message) { read(json, message, "", 0); }

void parse_json(std::string_view text, Message& message) {
  json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) bad("", "the text is not valid JSON");
  from_json(parsed, message);
}

}  // namespace anymps::server
