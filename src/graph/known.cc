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
  return ints_of(*value.constant);
}

std::vector<int64_t> ints_of(const Constant& constant) { return elements<kInt, int64_t>(constant); }

std::vector<double> doubles_of(const Constant& constant) {
  return elements<kReal, double>(constant);
}

std::optional<AttrValue> as_attribute(const Op& op, size_t i, const Constant& constant) {
  if (i >= op.inputs.size() || !op.inputs[i].optional || op.inputs[i].variadic) return std::nullopt;
  const int attr = op.attr_index(op.inputs[i].name);
  const int64_t count = constant.desc().count();
  // An empty attribute may stand for a default.
  if (attr < 0 || count == 0 || count > ValueType::kMaxContent || constant.shape().size() > 1 ||
      is_refreshable(constant))
    return std::nullopt;
  const AttrKind kind = op.attrs[attr].kind;
  if (kind == AttrKind::kFloats && constant.dtype() == DType::kF32) return doubles_of(constant);
  if (!contains(kIndex, constant.dtype())) return std::nullopt;
  if (kind == AttrKind::kInts) return ints_of(constant);
  if (kind != AttrKind::kInt || count != 1) return std::nullopt;
  const int64_t number = ints_of(constant)[0];
  return number != 0 ? std::optional<AttrValue>(number) : std::nullopt;  // so may 0
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
