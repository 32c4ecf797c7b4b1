// SPDX-License-Identifier: Apache-2.0
#include "lowering/value.h"

#include <stdexcept>

namespace anymps::lowering {

namespace {

template <class T>
const T& get(const Value& value, const char* wanted) {
  if (const T* found = std::get_if<T>(&value)) return *found;
  static constexpr const char* kNames[] = {"nothing",  "a tensor", "a flag",          "an integer",
                                           "a number", "integers", "numbers",         "a text",
                                           "a type",   "a list",   "a complex number"};
  throw std::invalid_argument(std::string(wanted) + " is expected, " + kNames[value.index()] +
                              " given");
}

}  // namespace

Tensor Value::tensor() const { return get<Tensor>(*this, "a tensor"); }
const std::string& Value::text() const { return get<std::string>(*this, "a text"); }
amps_dtype Value::dtype() const { return get<amps_dtype>(*this, "a type"); }
const Values& Value::values() const { return get<Values>(*this, "a list"); }

bool Value::flag() const {
  if (const auto* number = std::get_if<int64_t>(this)) return *number != 0;
  return get<bool>(*this, "a flag");
}

int64_t Value::integer() const {
  if (const auto* flag = std::get_if<bool>(this)) return *flag;
  if (const auto* number = std::get_if<double>(this)) return static_cast<int64_t>(*number);
  return get<int64_t>(*this, "an integer");
}

double Value::number() const {
  if (const auto* number = std::get_if<int64_t>(this)) return static_cast<double>(*number);
  if (const auto* flag = std::get_if<bool>(this)) return *flag;
  return get<double>(*this, "a number");
}

Ints Value::ints() const {
  if (is_static_number()) return {integer()};
  if (const auto* list = std::get_if<Values>(this)) {
    Ints numbers;
    for (const Value& item : *list) numbers.push_back(item.integer());
    return numbers;
  }
  if (const auto* floats = std::get_if<Floats>(this)) {
    Ints numbers;
    for (const double number : *floats) numbers.push_back(static_cast<int64_t>(number));
    return numbers;
  }
  return get<Ints>(*this, "a list of integers");
}

Floats Value::floats() const {
  if (is_static_number()) return {number()};
  Floats numbers;
  if (const auto* list = std::get_if<Values>(this)) {
    for (const Value& item : *list) numbers.push_back(item.number());
    return numbers;
  }
  if (const auto* ints = std::get_if<Ints>(this)) return {ints->begin(), ints->end()};
  return get<Floats>(*this, "a list of numbers");
}

}  // namespace anymps::lowering
