// SPDX-License-Identifier: Apache-2.0
// Reads fields of a configuration. Numbers may come as text, which is how protobuf prints 64 bits.
#pragma once

#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serving/error.h"

namespace anymps::serving {

class Fields {
 public:
  // `where`: "model 'm', input 'x'", for messages.
  Fields(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object() && !object.is_null()) fail("is not an object");
  }
  const std::string& where() const { return where_; }
  bool has(const char* name) const { return find(name) != nullptr; }

  std::string text(const char* name, std::string fallback = "") const {
    const nlohmann::json* value = find(name);
    if (!value) return fallback;
    if (!value->is_string()) fail(std::string("field '") + name + "' must be text");
    return value->get<std::string>();
  }
  bool flag(const char* name) const {
    const nlohmann::json* value = find(name);
    if (!value) return false;
    if (!value->is_boolean()) fail(std::string("field '") + name + "' must be true or false");
    return value->get<bool>();
  }
  int64_t integer(const char* name, int64_t fallback = 0) const {
    const nlohmann::json* value = find(name);
    return value ? to_integer(*value, name) : fallback;
  }
  std::vector<int64_t> integers(const char* name) const {
    std::vector<int64_t> list;
    for (const nlohmann::json& value : items(name)) list.push_back(to_integer(value, name));
    return list;
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> list;
    for (const nlohmann::json& value : items(name)) {
      if (!value.is_string()) fail(std::string("field '") + name + "' must be a list of texts");
      list.push_back(value.get<std::string>());
    }
    return list;
  }
  const nlohmann::json& items(const char* name) const {
    static const nlohmann::json kNone = nlohmann::json::array();
    return found_as(name, kNone, "a list");
  }
  const nlohmann::json& object(const char* name) const {
    static const nlohmann::json kNone = nlohmann::json::object();
    return found_as(name, kNone, "an object");
  }
  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(Code::kInvalidArgument, where_ + ": " + reason);
  }

 private:
  // The field, which must be of the kind of `none`; that itself if there is no such field.
  const nlohmann::json& found_as(const char* name, const nlohmann::json& none,
                                 const char* kind) const {
    const nlohmann::json* value = find(name);
    if (!value) return none;
    if (value->type() != none.type()) fail(std::string("field '") + name + "' must be " + kind);
    return *value;
  }
  const nlohmann::json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  int64_t to_integer(const nlohmann::json& value, const char* name) const {
    if (value.is_number_integer()) return value.get<int64_t>();
    if (value.is_string()) {
      const std::string& text = value.get_ref<const std::string&>();
      int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error == std::errc() && end == text.data() + text.size()) return number;
    }
    fail(std::string("field '") + name + "' must hold whole numbers, " + value.dump() + " given");
  }

  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace anymps::serving
