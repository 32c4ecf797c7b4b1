// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/program/program.h"

#include <algorithm>

#include "base/shape.h"
#include "formats/executorch/program/flat.h"
#include "formats/executorch/program/storage.h"
#include "formats/executorch/schema/program_fields.h"

namespace anymps::executorch {

namespace {

constexpr size_t kMaxRank = 16;    // ExecuTorch's own limit
constexpr size_t kMaxName = 4096;  // operators are copied into each of their calls
constexpr int32_t kNoTensor = -1;  // in a list of optional tensors

std::string name_of(const FlatTable& table, FlatField field) {
  const std::string_view text = table.string(field);
  if (text.size() > kMaxName) table.fail(field, "{} bytes are too many for a name", text.size());
  return std::string(text);
}

// One execution plan.
class MethodReader {
 public:
  MethodReader(const FlatTable& plan, const Storage& storage) : plan_(plan), storage_(storage) {}

  Method read() {
    method_.name = name_of(plan_, field::ExecutionPlan::kName);
    try {
      read_values();
      method_.inputs = indices(plan_, field::ExecutionPlan::kInputs);
      method_.outputs = indices(plan_, field::ExecutionPlan::kOutputs);
      for (const FlatTable& op : plan_.tables(field::ExecutionPlan::kOperators, "Operator")) {
        const std::string overload = name_of(op, field::Operator::kOverload);
        method_.operators.push_back(name_of(op, field::Operator::kName) +
                                    (overload.empty() ? "" : ".") + overload);
      }
      read_delegates();
      read_chain();
      method_.planned_bytes = plan_.numbers<int64_t>(field::ExecutionPlan::kNonConstBufferSizes);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{} (method \"{}\")", error.what(), method_.name));
    }
    return std::move(method_);
  }

 private:
  int32_t index(const FlatTable& table, FlatField field, int64_t value) const {
    if (value < 0 || value >= std::ssize(method_.values))
      table.fail(field, "there is no value {}; the method has {}", value, method_.values.size());
    return static_cast<int32_t>(value);
  }
  std::vector<int32_t> indices(const FlatTable& table, FlatField field) const {
    std::vector<int32_t> list = table.numbers<int32_t>(field);
    for (const int32_t value : list) index(table, field, value);
    return list;
  }

  void read_values() {
    const std::vector<FlatTable> values = plan_.tables(field::ExecutionPlan::kValues, "EValue");
    method_.values.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) method_.values[i] = read_value(values[i]);
    check_lists(values);
  }

  EValue read_value(const FlatTable& value) const {
    using F = field::EValue;
    const auto items = [&](const char* table) { return value.table(F::kValue, table); };
    const auto kind = value.scalar<uint8_t>(F::kType);
    switch (kind) {
      case F::kNull:
        return None{};
      case F::kInt:
      case F::kBool:
      case F::kDouble:
        return read_number(value, kind);
      case F::kTensor:
        return read_tensor(value.table(F::kValue, "Tensor"));
      case F::kString:
        return std::string(value.table(F::kValue, "String").string(field::String::kValue));
      case F::kIntList:
        return read_int_list(items("IntList"));
      case F::kDoubleList:
        return items("DoubleList").numbers<double>(field::List::kItems);
      case F::kBoolList: {
        const auto bools = items("BoolList").numbers<uint8_t>(field::List::kItems);
        return std::vector<bool>(bools.begin(), bools.end());
      }
      case F::kTensorList:
        return TensorList{items("TensorList").numbers<int32_t>(field::List::kItems)};
      case F::kOptionalTensorList:
        return TensorList{items("OptionalTensorList").numbers<int32_t>(field::List::kItems)};
      default:
        value.fail(F::kType, "{} is not the number of a type", kind);
    }
  }

  EValue read_int_list(const FlatTable& list) const {
    IntList ints;
    for (const int64_t item : list.numbers<int64_t>(field::List::kItems))
      ints.items.push_back(index(list, field::List::kItems, item));
    return ints;
  }

  // Lists refer to values that may come after them.
  void check_lists(const std::vector<FlatTable>& values) const {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto* list = std::get_if<IntList>(&method_.values[i]);
      if (!list) continue;
      for (const int32_t item : list->items) {
        const EValue& of = method_.values[item];
        if (!std::holds_alternative<int64_t>(of))
          values[i]
              .table(field::EValue::kValue, "IntList")
              .fail(field::List::kItems, "value {} is a {}, not an Int", item, kind_of(of));
      }
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const auto* list = std::get_if<TensorList>(&method_.values[i]);
      if (!list) continue;
      const bool optional =
          values[i].scalar<uint8_t>(field::EValue::kType) == field::EValue::kOptionalTensorList;
      const FlatTable table =
          values[i].table(field::EValue::kValue, optional ? "OptionalTensorList" : "TensorList");
      for (const int32_t item : list->items) {
        if (optional && item == kNoTensor) continue;
        const EValue& of = method_.values[index(table, field::List::kItems, item)];
        if (!std::holds_alternative<Tensor>(of) && !(optional && std::holds_alternative<None>(of)))
          table.fail(field::List::kItems, "value {} is a {}, not a Tensor", item, kind_of(of));
      }
    }
  }

  Tensor read_tensor(const FlatTable& table) const {
    using F = field::Tensor;
    Tensor tensor;
    tensor.dtype = read_dtype(table, F::kScalarType);
    if (const auto offset = table.scalar<int32_t>(F::kStorageOffset))
      table.unsupported(F::kStorageOffset, "it is {}, must be 0", offset);
    tensor.sizes = read_sizes(table, F::kSizes);
    tensor.dim_order = read_dim_order(table, F::kDimOrder, tensor.sizes.size());
    const auto dynamism = table.scalar<int8_t>(F::kDynamism);
    if (dynamism < 0 || dynamism > 2)
      table.fail(F::kDynamism, "{} is none of 0, 1 and 2", dynamism);
    tensor.dynamism = static_cast<Tensor::Dynamism>(dynamism);
    if (const auto place = table.maybe(F::kAllocation, "AllocationDetails")) {
      tensor.planned = true;
      tensor.memory = place->scalar<uint32_t>(field::AllocationDetails::kMemory);
      tensor.offset = place->scalar<uint32_t>(field::AllocationDetails::kOffsetLow) |
                      uint64_t{place->scalar<uint32_t>(field::AllocationDetails::kOffsetHigh)}
                          << 32;
    }
    const size_t bytes = read_bytes(table, F::kSizes, tensor.dtype, tensor.sizes);
    const auto extra = table.maybe(F::kExtra, "ExtraTensorInfo");
    if (extra) tensor.name = name_of(*extra, field::ExtraTensorInfo::kName);
    if (extra && extra->scalar<int8_t>(field::ExtraTensorInfo::kLocation) == 1) {
      tensor.data = storage_.external(*extra, tensor, bytes);
    } else if (const auto buffer = table.scalar<uint32_t>(F::kDataBuffer)) {
      const auto segment =
          extra ? extra->scalar<uint64_t>(field::ExtraTensorInfo::kMutableSegment) : 0;
      tensor.data = tensor.planned ? storage_.state(table, segment, buffer, bytes)
                                   : storage_.constant(table, buffer, bytes);
    }
    if (tensor.data && tensor.dynamism != Tensor::Dynamism::kStatic && !tensor.planned)
      table.unsupported(F::kDynamism, "a constant cannot change its shape");
    return tensor;
  }

  void read_delegates() {
    using F = field::BackendDelegate;
    for (const FlatTable& table :
         plan_.tables(field::ExecutionPlan::kDelegates, "BackendDelegate")) {
      Delegate delegate;
      delegate.backend = name_of(table, F::kId);
      delegate.payload =
          storage_.payload(table.table(F::kProcessed, "BackendDelegateDataReference"));
      for (const FlatTable& spec : table.tables(F::kCompileSpecs, "CompileSpec"))
        delegate.options.emplace_back(name_of(spec, field::CompileSpec::kKey),
                                      spec.string(field::CompileSpec::kValue));
      method_.delegates.push_back(std::move(delegate));
    }
  }

  void read_chain() {
    const std::vector<FlatTable> chains = plan_.tables(field::ExecutionPlan::kChains, "Chain");
    if (chains.size() > 1)
      plan_.unsupported(field::ExecutionPlan::kChains, "there are {} that may run at the same time",
                        chains.size());
    if (chains.empty()) return;
    const auto instructions = chains[0].tables(field::Chain::kInstructions, "Instruction");
    for (const FlatTable& instruction : instructions)
      method_.instructions.push_back(read_instruction(instruction, instructions.size()));
  }

  Instruction read_instruction(const FlatTable& table, size_t count) const {
    using F = field::Instruction;
    const auto kind = table.scalar<uint8_t>(F::kType);
    const auto value = [&](const FlatTable& call, FlatField field) {
      return index(call, field, call.scalar<int32_t>(field));
    };
    const auto number = [](const FlatTable& call, FlatField field, const char* what, size_t there) {
      const auto read = call.scalar<int32_t>(field);
      if (read < 0 || static_cast<size_t>(read) >= there)
        call.fail(field, "there is no {} {}; the method has {}", what, read, there);
      return read;
    };
    switch (kind) {
      case F::kKernel: {
        const FlatTable call = table.table(F::kArgs, "KernelCall");
        const int32_t op =
            number(call, field::KernelCall::kOperator, "operator", method_.operators.size());
        return KernelCall{method_.operators[op], indices(call, field::KernelCall::kArgs)};
      }
      case F::kDelegate: {
        const FlatTable call = table.table(F::kArgs, "DelegateCall");
        const int32_t delegate =
            number(call, field::DelegateCall::kDelegate, "delegate", method_.delegates.size());
        return DelegateCall{delegate, indices(call, field::DelegateCall::kArgs)};
      }
      case F::kMove: {
        const FlatTable call = table.table(F::kArgs, "MoveCall");
        return MoveCall{value(call, field::MoveCall::kFrom), value(call, field::MoveCall::kTo)};
      }
      case F::kJumpFalse: {
        using J = field::JumpFalseCall;
        const FlatTable call = table.table(F::kArgs, "JumpFalseCall");
        JumpFalse jump;
        jump.condition = value(call, J::kCondition);
        jump.destination = call.scalar<int32_t>(J::kDestination);
        if (jump.destination < 0 || static_cast<size_t>(jump.destination) > count)
          call.fail(J::kDestination, "there is no instruction {}; the chain has {}",
                    jump.destination, count);
        return jump;
      }
      case F::kFree:
        return FreeCall{value(table.table(F::kArgs, "FreeCall"), field::FreeCall::kValue)};
      default:
        table.fail(F::kType, "{} is not the number of an instruction", kind);
    }
  }

  const FlatTable& plan_;
  const Storage& storage_;
  Method method_;
};

}  // namespace

EValue read_number(const FlatTable& value, uint8_t kind) {
  using F = field::EValue;
  if (kind == F::kInt) return value.table(F::kValue, "Int").scalar<int64_t>(field::Int::kValue);
  if (kind == F::kBool)
    return value.table(F::kValue, "Bool").scalar<uint8_t>(field::Bool::kValue) != 0;
  return value.table(F::kValue, "Double").scalar<double>(field::Double::kValue);
}

const char* kind_of(const EValue& value) {
  static constexpr const char* kNames[] = {"None",     "Int",       "Bool",    "Double",
                                           "Tensor",   "String",    "IntList", "DoubleList",
                                           "BoolList", "TensorList"};
  static_assert(std::size(kNames) == std::variant_size_v<EValue>);
  return kNames[value.index()];
}

DType to_dtype(int8_t scalar_type) {
  static constexpr std::pair<int8_t, DType> kTypes[] = {
      {0, DType::kU8},      {1, DType::kI8},          {2, DType::kI16},
      {3, DType::kI32},     {4, DType::kI64},         {5, DType::kF16},
      {6, DType::kF32},     {7, DType::kF64},         {9, DType::kC64},
      {11, DType::kBool},   {15, DType::kBF16},       {23, DType::kF8E5M2},
      {24, DType::kF8E4M3}, {25, DType::kF8E5M2FNUZ}, {26, DType::kF8E4M3FNUZ},
      {27, DType::kU16},    {28, DType::kU32},        {29, DType::kU64},
  };
  for (const auto& [from, to] : kTypes)
    if (from == scalar_type) return to;
  constexpr int8_t kComplexDouble = 10;
  if (scalar_type == kComplexDouble)
    fail(Code::kUnsupported, "c128 is not supported: ExecuTorch has no kernels of complex double");
  fail(Code::kUnsupported, "scalar type {} is not supported", scalar_type);
}

Ints read_sizes(const FlatTable& table, FlatField field) {
  const auto sizes = table.numbers<int32_t>(field);
  if (sizes.size() > kMaxRank)
    table.unsupported(field, "{} axes are more than {}", sizes.size(), kMaxRank);
  for (const int32_t size : sizes)
    if (size < 0) table.fail(field, "extent {} is negative", size);
  return {sizes.begin(), sizes.end()};
}

std::vector<uint8_t> read_dim_order(const FlatTable& table, FlatField field, size_t rank) {
  std::vector<uint8_t> order = table.numbers<uint8_t>(field);
  if (order.empty())
    for (size_t axis = 0; axis < rank; ++axis) order.push_back(static_cast<uint8_t>(axis));
  std::vector<bool> seen(rank, false);
  if (order.size() != rank) table.fail(field, "{} axes for a tensor of {}", order.size(), rank);
  for (const uint8_t axis : order) {
    if (axis >= rank || seen[axis])
      table.fail(field, "[{}] does not order {} axes", fmt::join(order, ", "), rank);
    seen[axis] = true;
  }
  return order;
}

size_t read_bytes(const FlatTable& table, FlatField field, DType dtype, const Ints& sizes) {
  try {
    return byte_count(dtype, Shape(sizes.begin(), sizes.end()));
  } catch (const Error& error) {
    table.fail(field, "[{}] has too many elements", fmt::join(sizes, ", "));
  }
}

const Method& Program::method(std::string_view name) const {
  if (name.empty() && methods.size() == 1) return methods[0];
  const std::string_view wanted = name.empty() ? "forward" : name;
  std::string names;
  for (const Method& method : methods) {
    if (method.name == wanted) return method;
    names += (names.empty() ? "" : ", ") + method.name;
  }
  fail(Code::kNotFound, "[executorch] {}: there is no method \"{}\"; it has: {}", source.name,
       wanted, names.empty() ? "none" : names);
}

bool has_identifier(std::string_view bytes, std::string_view letters) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return bytes.size() >= 8 && bytes.substr(4, 2) == letters && is_digit(bytes[6]) &&
         is_digit(bytes[7]);
}

bool is_program(std::string_view bytes) { return has_identifier(bytes, "ET"); }

Program read_program(const Source& source) {
  Program program;
  program.source = source;
  const Storage storage(source);
  program.version = storage.root().scalar<uint32_t>(field::Program::kVersion);
  for (const FlatTable& plan :
       storage.root().tables(field::Program::kExecutionPlan, "ExecutionPlan"))
    program.methods.push_back(MethodReader(plan, storage).read());
  program.named_data = storage.named_data();
  if (const auto external = storage.external_file())
    program.source.owner =
        std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
            source.owner, external);
  return program;
}

}  // namespace anymps::executorch
