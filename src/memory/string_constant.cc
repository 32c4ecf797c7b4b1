// SPDX-License-Identifier: Apache-2.0
#include "memory/string_constant.h"

#include "base/string_store.h"

namespace anymps {

ConstantPtr string_constant(Shape shape, std::vector<std::string> values) {
  struct Owner {
    std::vector<std::string> values;
    std::vector<Text> elements;
  };
  require(element_count(shape) == std::ssize(values), "[constant] {} strings for the shape {}",
          values.size(), to_string(shape));
  auto owner = std::make_shared<Owner>();
  owner->values = std::move(values);
  for (const std::string& value : owner->values)
    owner->elements.push_back(value.empty() ? nullptr : &value);
  const void* data = owner->elements.data();
  return Constant::view(DType::kString, std::move(shape), data, std::move(owner));
}

}  // namespace anymps
