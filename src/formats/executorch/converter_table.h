// SPDX-License-Identifier: Apache-2.0
// Converters by the names of what they convert: operators of a program, kinds of nodes of a
// payload. The lists in the families' files fill a table while statics are made.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"

namespace anymps::executorch {

template <typename Converter>
class ConverterTable {
 public:
  void add(const std::string& name, Converter converter) {
    if (!add_if_new(name, std::move(converter)))
      fail(Code::kInternal, "[executorch] {} has two converters", name);
  }
  bool add_if_new(const std::string& name, Converter converter) {
    return converters_.emplace(name, std::move(converter)).second;
  }
  const Converter* find(std::string_view name) const {  // null: none
    const auto found = converters_.find(std::string(name));
    return found == converters_.end() ? nullptr : &found->second;
  }
  const std::unordered_map<std::string, Converter>& all() const { return converters_; }

 private:
  std::unordered_map<std::string, Converter> converters_;
};

}  // namespace anymps::executorch
