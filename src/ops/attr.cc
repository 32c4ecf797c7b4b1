// SPDX-License-Identifier: Apache-2.0
#include "ops/attr.h"

#include <algorithm>
#include <iterator>

#include "ops/op.h"

namespace anymps {

namespace {

size_t variant_index(AttrKind kind) {
  static constexpr size_t kPlaces[] = {0, 1, 2, 3, 4, 0, 0, 5};  // bools and dtypes are integers
  return kPlaces[static_cast<size_t>(kind)];
}

AttrValue checked(const Op& op, const AttrSpec& spec, AttrValue value) {
  if (spec.kind == AttrKind::kFloat && std::holds_alternative<int64_t>(value))
    value = static_cast<double>(std::get<int64_t>(value));
  if (spec.kind == AttrKind::kFloats && std::holds_alternative<std::vector<int64_t>>(value)) {
    const auto& ints = std::get<std::vector<int64_t>>(value);
    value = std::vector<double>(ints.begin(), ints.end());
  }
  require(value.index() == variant_index(spec.kind), "[{}] attribute '{}' must be of kind {}",
          op.name, spec.name, name(spec.kind));
  if (spec.kind == AttrKind::kString && !spec.choices.empty()) {
    const auto& text = std::get<std::string>(value);
    require(std::find(spec.choices.begin(), spec.choices.end(), text) != spec.choices.end(),
            "[{}] attribute '{}' is '{}', must be one of {}", op.name, spec.name, text,
            fmt::join(spec.choices, ", "));
  }
  if (spec.kind == AttrKind::kDType) {
    const int64_t code = std::get<int64_t>(value);
    require(code >= 0 && code < kDTypeCount, "[{}] attribute '{}': {} is not a dtype", op.name,
            spec.name, code);
  }
  return value;
}

}  // namespace

const char* name(AttrKind kind) {
  static constexpr const char* kNames[] = {"int",    "float", "string", "ints",
                                           "floats", "bool",  "dtype",  "graph"};
  static_assert(std::size(kNames) == static_cast<size_t>(AttrKind::kGraph) + 1);
  return kNames[static_cast<size_t>(kind)];
}

std::string to_string(AttrKind kind, const AttrValue& value) {
  switch (kind) {
    case AttrKind::kInt:
      return std::to_string(std::get<int64_t>(value));
    case AttrKind::kBool:
      return std::get<int64_t>(value) ? "true" : "false";
    case AttrKind::kDType:
      return name(static_cast<DType>(std::get<int64_t>(value)));
    case AttrKind::kFloat:
      return fmt::format("{}", std::get<double>(value));
    case AttrKind::kString:
      return "\"" + std::get<std::string>(value) + "\"";
    case AttrKind::kInts:
      return fmt::format("[{}]", fmt::join(std::get<std::vector<int64_t>>(value), ", "));
    case AttrKind::kFloats:
      return fmt::format("[{}]", fmt::join(std::get<std::vector<double>>(value), ", "));
    case AttrKind::kGraph:
      return "<graph>";
  }
  return "?";
}

Attrs::Attrs(const Op& op, const NamedAttrs& given) : op_(&op) {
  values_.reserve(op.attrs.size());
  for (const AttrSpec& spec : op.attrs) values_.push_back(spec.default_value);
  std::vector<bool> seen(op.attrs.size());
  for (const NamedAttr& attr : given) {
    const int index = op.attr_index(attr.name);
    require(index >= 0, "[{}] has no attribute '{}'", op.name, attr.name);
    require(!seen[index], "[{}] attribute '{}' is given twice", op.name, attr.name);
    seen[index] = true;
    values_[index] = checked(op, op.attrs[index], attr.value);
  }
  for (size_t i = 0; i < seen.size(); ++i)
    require(seen[i] || !op.attrs[i].required, "[{}] attribute '{}' is required", op.name,
            op.attrs[i].name);
}

void Attrs::set(const NamedAttr& attr) {
  const int index = op_->attr_index(attr.name);
  require(index >= 0, "[{}] has no attribute '{}'", op_->name, attr.name);
  values_[index] = checked(*op_, op_->attrs[index], attr.value);
}

NamedAttrs Attrs::named() const {
  NamedAttrs named;
  for (size_t i = 0; i < values_.size(); ++i)
    if (op_->attrs[i].required || values_[i] != op_->attrs[i].default_value)
      named.emplace_back(op_->attrs[i].name, values_[i]);
  return named;
}

const AttrValue& Attrs::at(const char* name) const {
  const int index = op_ ? op_->attr_index(name) : -1;
  if (index < 0)
    fail(Code::kInternal, "[{}] the record has no attribute '{}'", op_ ? op_->name : "?", name);
  return values_[index];
}

}  // namespace anymps
