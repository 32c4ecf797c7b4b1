// SPDX-License-Identifier: Apache-2.0
#include "lowering/functions.h"

#include <stdexcept>

namespace anymps::lowering {

const Value& Call::part(size_t i) const {
  if (i >= parts.size())
    throw std::invalid_argument("argument " + std::to_string(i) + " is missing");
  return parts[i];
}

const Value* Call::option(const char* name) const {
  for (const auto& [key, value] : named)
    if (key == name) return &value;
  return nullptr;
}

namespace {
auto& registry() {
  static auto& functions = *new std::unordered_map<std::string, Function>;
  return functions;
}
}  // namespace

Functions::Functions(std::initializer_list<std::pair<const char*, Function>> family) {
  registry().insert(family.begin(), family.end());
}

const std::unordered_map<std::string, Function>& functions() { return registry(); }

}  // namespace anymps::lowering
