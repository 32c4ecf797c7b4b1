// SPDX-License-Identifier: Apache-2.0
#include "lowering/functions.h"

#include <stdexcept>
#include <unordered_map>

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

Function find_function(const std::string& name) {
  static const auto& all = *[] {
    auto* made = new std::unordered_map<std::string, Function>;
    for (const auto family : {shape_functions(), tensor_functions(), list_functions(),
                              layer_functions(), optimizer_functions(), recurrent_functions()})
      for (const FunctionEntry& entry : family) made->emplace(entry.name, entry.function);
    return made;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace anymps::lowering
