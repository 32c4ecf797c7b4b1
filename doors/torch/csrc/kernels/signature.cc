// SPDX-License-Identifier: Apache-2.0
#include "kernels/signature.h"

#include <map>
#include <sstream>

#include <ATen/core/jit_type.h>

namespace anymps::aten {

namespace {

Slot::Kind kind_of(const c10::Argument& argument) {
  using Kind = Slot::Kind;
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  if (const auto list = type->cast<c10::ListType>()) {
    c10::TypePtr element = list->getElementType();
    if (const auto optional = element->cast<c10::OptionalType>())
      element = optional->getElementType();
    switch (element->kind()) {
      case c10::TypeKind::TensorType:
        return Kind::kTensors;
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType:
      case c10::TypeKind::BoolType:
        return Kind::kInts;
      case c10::TypeKind::FloatType:
      case c10::TypeKind::NumberType:
        return Kind::kFloats;
      default:
        return Kind::kOther;
    }
  }
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return Kind::kTensor;
    case c10::TypeKind::NumberType:
      return Kind::kNumber;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return Kind::kInt;
    case c10::TypeKind::FloatType:
      return Kind::kFloat;
    case c10::TypeKind::BoolType:
      return Kind::kFlag;
    case c10::TypeKind::StringType:
      return Kind::kText;
    case c10::TypeKind::ScalarTypeType:
      return Kind::kDType;
    case c10::TypeKind::GeneratorType:
      return Kind::kGenerator;
    default:
      return Kind::kOther;
  }
}

}  // namespace

Signature::Signature(const c10::FunctionSchema& schema, const TableRow& row)
    : returns(schema.returns().size()) {
  std::map<std::string, std::string> marks;
  std::istringstream words(row.marks);
  for (std::string word; words >> word;) {
    if (const size_t name = word.find_first_not_of("~^*!@+#<>%&="); name > 0)
      marks.emplace(word.substr(name), word.substr(0, name));
    else if (word == "common" || word == "common_float")
      common = true, common_float = word == "common_float";
    else if (word == "state")
      state = true;
    else if (word == "out_type")
      out_type = true;
    else if (word == "out_dims")
      out_dims = true;
    else if (word == "format" || word == "any_format")
      format = true, any_format = word == "any_format";
    else if (word == "each")
      each = true;
    else if (word == "checked")
      checked = true;
    else
      TORCH_CHECK(false, "the row of ", schema.operator_name(), " has the unknown mark ", word);
  }
  std::vector<size_t> changed, unannounced;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const auto found = marks.find(argument.name());
    const std::string of_it = found == marks.end() ? "" : found->second;
    const auto marked = [&](char mark) { return of_it.find(mark) != std::string::npos; };
    if (found != marks.end()) marks.erase(found);
    Slot slot;
    slot.kind = kind_of(argument);
    slot.out = argument.is_out();
    slot.common = marked('*');
    slot.on_cpu = marked('@') || marked('#');
    slot.counts_from_zero = marked('+');
    slot.probabilities = marked('%');
    slot.not_negative = marked('&');
    slot.held = marked('=');
    slot.masks = marked('#');
    slot.bound = marked('<') ? Bound::kLow : marked('>') ? Bound::kHigh : Bound::kNone;
    const bool writes = argument.alias_info() && argument.alias_info()->isWrite();
    if (slot.out) written.push_back(i);
    takes_out = takes_out || slot.out;
    if (writes && !slot.out) changed.push_back(i);
    if (marked('!')) unannounced.push_back(i);
    if (each) take_one(slot.kind, i);
    if (argument.name() == "check_errors") check_errors = i;
    if (argument.name() == "info") info = i;
    slots.push_back(slot);
    if (slot.out) continue;
    const bool tensors = slot.kind == Slot::Kind::kTensor || slot.kind == Slot::Kind::kTensors;
    if (slot.common && slot.kind == Slot::Kind::kTensor)
      arguments += "*";
    else if (marked(tensors ? '^' : '~'))
      arguments += tensors ? "^" : "~";
    arguments += argument.name() + " ";
  }
  for (const auto& [name, mark] : marks)
    TORCH_CHECK(false, "the row of ", schema.operator_name(), " marks ", name,
                ", which is no argument of it");
  for (const c10::Argument& result : schema.returns())
    if (!result.alias_info() || !result.alias_info()->isWrite()) ++made;
  in_place = written.empty() && !changed.empty();
  written.insert(written.end(), changed.begin(), changed.end());
  flag = returns == 1 && schema.returns()[0].type()->kind() == c10::TypeKind::BoolType;
  written.insert(written.end(), unannounced.begin(), unannounced.end());
  if (common) arguments += "common ";
  if (state) arguments += "state ";
  if (out_type) arguments += "out_type ";
  if (out_dims) arguments += "out_dims ";
}

// One of a list instead of the list.
void Signature::take_one(Slot::Kind& kind, size_t i) {
  if (kind != Slot::Kind::kTensors && kind != Slot::Kind::kFloats) return;
  kind = kind == Slot::Kind::kTensors ? Slot::Kind::kTensor : Slot::Kind::kNumber;
  lists.push_back(i);
}

}  // namespace anymps::aten
