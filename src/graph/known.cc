// SPDX-License-Identifier: Apache-2.0
#include "graph/known.h"

#include <cstring>

#include "memory/refreshable.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

template <DTypeSet kTypes, typename R>
std::vector<R> elements(const Constant& constant) {
  const auto bytes = constant.data();
  std::vector<R> result(constant.desc().count());
  dispatch<kTypes>(constant.dtype(), [&]<typename T>() {
    for (size_t i = 0; i < result.size(); ++i) {
      T element;
      std::memcpy(&element, bytes.get() + i * sizeof(T), sizeof(T));
      result[i] = static_cast<R>(static_cast<Compute<T>>(element));
    }
  });
  return result;
}

}  // namespace

std::vector<int64_t> ints_of(const Value& value) {
  require(value.is_constant(), "[graph] '{}' is not a constant", value.name);
  return elements<kInt, int64_t>(*value.constant);
}

std::vector<double> doubles_of(const Constant& constant) {
  return elements<kReal, double>(constant);
}

bool is_list(const Value& value) {
  return value.is_constant() && value.shape().size() <= 1 &&
         value.constant->desc().count() <= 4096 && !is_refreshable(*value.constant);
}

std::optional<std::vector<int64_t>> known_ints(const Value& value) {
  if (is_list(value) && is_int(value.dtype())) return ints_of(value);
  return numbers(value.type.content);
}

}  // namespace anymps
