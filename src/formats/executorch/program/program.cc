// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/program/program.h"

#include <algorithm>

#include "base/shape.h"
#include "formats/executorch/program/flat.h"
#include "formats/executorch/program/storage.h"

namespace anymps::executorch {

namespace {

constexpr size_t kMaxRank = 16;    // ExecuTorch's own limit
constexpr size_t kMaxName = 4096;  // operators are copied into each of their calls
constexpr int32_t kNoTensor = -1;  // in a list of optional tensors

std::string name_of(const FlatTable& table, int field, const char* name) {
  const std::string_view text = table.string(field, name);
  if (text.size() > kMaxName) table.fail(name, "{} bytes are too many for a name", text.size());
  return std::string(text);
}

// One execution plan.
class MethodReader {
 public:
  MethodReader(const FlatTable& plan, const Storage& storage) : plan_(plan), storage_(storage) {}

  Method read() {
    method_.name = name_of(plan_, 0, "name");
    try {
      read_values();
      method_.inputs = indices(plan_, 3, "inputs");
      method_.outputs = indices(plan_, 4, "outputs");
      for (const FlatTable& op : plan_.tables(6, "operators", "Operator")) {
        const std::string overload = name_of(op, 1, "overload");
        method_.operators.push_back(name_of(op, 0, "name") + (overload.empty() ? "" : ".") +
                                    overload);
      }
      read_delegates();
      read_chain();
      method_.planned_bytes = plan_.numbers<int64_t>(8, "non_const_buffer_sizes");
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{} (method \"{}\")", error.what(), method_.name));
    }
    return std::move(method_);
  }

 private:
  int32_t index(const FlatTable& table, const char* field, int64_t value) const {
    if (value < 0 || value >= static_cast<int64_t>(method_.values.size()))
      table.fail(field, "there is no value {}; the method has {}", value, method_.values.size());
    return static_cast<int32_t>(value);
  }
  std::vector<int32_t> indices(const FlatTable& table, int field, const char* name) const {
    std::vector<int32_t> list = table.numbers<int32_t>(field, name);
    for (const int32_t value : list) index(table, name, value);
    return list;
  }

  void read_values() {
    const std::vector<FlatTable> values = plan_.tables(2, "values", "EValue");
    method_.values.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) method_.values[i] = read_value(values[i]);
    check_lists(values);
  }

  // A union is two fields: the number of its type, and the table.
  EValue read_value(const FlatTable& value) const {
    const auto kind = value.scalar<uint8_t>(0, "val_type");
    switch (kind) {
      case 1:
        return None{};
      case 2:
        return value.table(1, "val", "Int").scalar<int64_t>(0, "int_val");
      case 3:
        return value.table(1, "val", "Bool").scalar<uint8_t>(0, "bool_val") != 0;
      case 4:
        return value.table(1, "val", "Double").scalar<double>(0, "double_val");
      case 5:
        return read_tensor(value.table(1, "val", "Tensor"));
      case 6:
        return std::string(value.table(1, "val", "String").string(0, "string_val"));
      case 7:
        return read_int_list(value.table(1, "val", "IntList"));
      case 8:
        return value.table(1, "val", "DoubleList").numbers<double>(0, "items");
      case 9: {
        const auto items = value.table(1, "val", "BoolList").numbers<uint8_t>(0, "items");
        return std::vector<bool>(items.begin(), items.end());
      }
      case 10:
        return TensorList{value.table(1, "val", "TensorList").numbers<int32_t>(0, "items")};
      case 11:
        return TensorList{value.table(1, "val", "OptionalTensorList").numbers<int32_t>(0, "items")};
      default:
        value.fail("val_type", "{} is not the number of a type", kind);
    }
  }

  EValue read_int_list(const FlatTable& list) const {
    IntList ints;
    for (const int64_t item : list.numbers<int64_t>(0, "items"))
      ints.items.push_back(index(list, "items", item));
    return ints;
  }

  // Lists refer to values that may come after them.
  void check_lists(const std::vector<FlatTable>& values) const {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto* list = std::get_if<IntList>(&method_.values[i]);
      if (!list) continue;
      for (const int32_t item : list->items) {
        const EValue& of = method_.values[static_cast<size_t>(item)];
        if (!std::holds_alternative<int64_t>(of))
          values[i]
              .table(1, "val", "IntList")
              .fail("items", "value {} is a {}, not an Int", item, kind_of(of));
      }
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const auto* list = std::get_if<TensorList>(&method_.values[i]);
      if (!list) continue;
      const bool optional = values[i].scalar<uint8_t>(0, "val_type") == 11;
      const FlatTable table =
          values[i].table(1, "val", optional ? "OptionalTensorList" : "TensorList");
      for (const int32_t item : list->items) {
        if (optional && item == kNoTensor) continue;
        const EValue& of = method_.values[static_cast<size_t>(index(table, "items", item))];
        if (!std::holds_alternative<Tensor>(of) && !(optional && std::holds_alternative<None>(of)))
          table.fail("items", "value {} is a {}, not a Tensor", item, kind_of(of));
      }
    }
  }

  Tensor read_tensor(const FlatTable& table) const {
    Tensor tensor;
    tensor.dtype = read_dtype(table, 0, "scalar_type");
    if (const auto offset = table.scalar<int32_t>(1, "storage_offset"))
      table.unsupported("storage_offset", "it is {}, must be 0", offset);
    tensor.sizes = read_sizes(table, 2, "sizes");
    tensor.dim_order = read_dim_order(table, 3, "dim_order", tensor.sizes.size());
    const auto dynamism = table.scalar<int8_t>(8, "shape_dynamism");
    if (dynamism < 0 || dynamism > 2)
      table.fail("shape_dynamism", "{} is none of 0, 1 and 2", dynamism);
    tensor.dynamism = static_cast<Tensor::Dynamism>(dynamism);
    if (const auto place = table.maybe(6, "allocation_info", "AllocationDetails")) {
      tensor.planned = true;
      tensor.memory = place->scalar<uint32_t>(0, "memory_id");
      tensor.offset = place->scalar<uint32_t>(1, "memory_offset_low") |
                      uint64_t{place->scalar<uint32_t>(2, "memory_offset_high")} << 32;
    }
    const size_t bytes = read_bytes(table, "sizes", tensor.dtype, tensor.sizes);
    const auto extra = table.maybe(9, "extra_tensor_info", "ExtraTensorInfo");
    if (extra) tensor.name = name_of(*extra, 1, "fully_qualified_name");
    if (extra && extra->scalar<int8_t>(2, "location") == 1) {
      tensor.data = storage_.external(*extra, tensor, bytes);
    } else if (const auto buffer = table.scalar<uint32_t>(5, "data_buffer_idx")) {
      const auto segment = extra ? extra->scalar<uint64_t>(0, "mutable_data_segments_idx") : 0;
      tensor.data = tensor.planned ? storage_.state(table, segment, buffer, bytes)
                                   : storage_.constant(table, buffer, bytes);
    }
    if (tensor.data && tensor.dynamism != Tensor::Dynamism::kStatic && !tensor.planned)
      table.unsupported("shape_dynamism", "a constant cannot change its shape");
    return tensor;
  }

  void read_delegates() {
    for (const FlatTable& table : plan_.tables(7, "delegates", "BackendDelegate")) {
      Delegate delegate;
      delegate.backend = name_of(table, 0, "id");
      delegate.payload =
          storage_.payload(table.table(1, "processed", "BackendDelegateDataReference"));
      for (const FlatTable& spec : table.tables(2, "compile_specs", "CompileSpec"))
        delegate.options.emplace_back(name_of(spec, 0, "key"), spec.string(1, "value"));
      method_.delegates.push_back(std::move(delegate));
    }
  }

  void read_chain() {
    const std::vector<FlatTable> chains = plan_.tables(5, "chains", "Chain");
    if (chains.size() > 1)
      plan_.unsupported("chains", "there are {} that may run at the same time", chains.size());
    if (chains.empty()) return;
    const auto instructions = chains[0].tables(2, "instructions", "Instruction");
    for (const FlatTable& instruction : instructions)
      method_.instructions.push_back(read_instruction(instruction, instructions.size()));
  }

  Instruction read_instruction(const FlatTable& table, size_t count) const {
    const auto kind = table.scalar<uint8_t>(0, "instr_args_type");
    switch (kind) {
      case 1: {
        const FlatTable call = table.table(1, "instr_args", "KernelCall");
        const auto op = call.scalar<int32_t>(0, "op_index");
        if (op < 0 || static_cast<size_t>(op) >= method_.operators.size())
          call.fail("op_index", "there is no operator {}; the method has {}", op,
                    method_.operators.size());
        return KernelCall{method_.operators[static_cast<size_t>(op)], indices(call, 1, "args")};
      }
      case 2: {
        const FlatTable call = table.table(1, "instr_args", "DelegateCall");
        const auto delegate = call.scalar<int32_t>(0, "delegate_index");
        if (delegate < 0 || static_cast<size_t>(delegate) >= method_.delegates.size())
          call.fail("delegate_index", "there is no delegate {}; the method has {}", delegate,
                    method_.delegates.size());
        return DelegateCall{delegate, indices(call, 1, "args")};
      }
      case 3: {
        const FlatTable call = table.table(1, "instr_args", "MoveCall");
        return MoveCall{index(call, "move_from", call.scalar<int32_t>(0, "move_from")),
                        index(call, "move_to", call.scalar<int32_t>(1, "move_to"))};
      }
      case 4: {
        const FlatTable call = table.table(1, "instr_args", "JumpFalseCall");
        JumpFalse jump;
        jump.condition =
            index(call, "cond_value_index", call.scalar<int32_t>(0, "cond_value_index"));
        jump.destination = call.scalar<int32_t>(1, "destination_instruction");
        if (jump.destination < 0 || static_cast<size_t>(jump.destination) > count)
          call.fail("destination_instruction", "there is no instruction {}; the chain has {}",
                    jump.destination, count);
        return jump;
      }
      case 5: {
        const FlatTable call = table.table(1, "instr_args", "FreeCall");
        return FreeCall{index(call, "value_index", call.scalar<int32_t>(0, "value_index"))};
      }
      default:
        table.fail("instr_args_type", "{} is not the number of an instruction", kind);
    }
  }

  const FlatTable& plan_;
  const Storage& storage_;
  Method method_;
};

}  // namespace

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
  fail(Code::kUnsupported, "scalar type {} is not supported", scalar_type);
}

Ints read_sizes(const FlatTable& table, int field, const char* name) {
  const auto sizes = table.numbers<int32_t>(field, name);
  if (sizes.size() > kMaxRank)
    table.unsupported(name, "{} axes are more than {}", sizes.size(), kMaxRank);
  for (const int32_t size : sizes)
    if (size < 0) table.fail(name, "extent {} is negative", size);
  return {sizes.begin(), sizes.end()};
}

std::vector<uint8_t> read_dim_order(const FlatTable& table, int field, const char* name,
                                    size_t rank) {
  std::vector<uint8_t> order = table.numbers<uint8_t>(field, name);
  if (order.empty())
    for (size_t axis = 0; axis < rank; ++axis) order.push_back(static_cast<uint8_t>(axis));
  std::vector<bool> seen(rank, false);
  if (order.size() != rank) table.fail(name, "{} axes for a tensor of {}", order.size(), rank);
  for (const uint8_t axis : order) {
    if (axis >= rank || seen[axis])
      table.fail(name, "[{}] does not order {} axes", fmt::join(order, ", "), rank);
    seen[axis] = true;
  }
  return order;
}

size_t read_bytes(const FlatTable& table, const char* name, DType dtype, const Ints& sizes) {
  try {
    return byte_count(dtype, Shape(sizes.begin(), sizes.end()));
  } catch (const Error& error) {
    table.fail(name, "[{}] has too many elements", fmt::join(sizes, ", "));
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
  program.version = storage.root().scalar<uint32_t>(0, "version");
  for (const FlatTable& plan : storage.root().tables(1, "execution_plan", "ExecutionPlan"))
    program.methods.push_back(MethodReader(plan, storage).read());
  program.named_data = storage.named_data();
  if (const auto external = storage.external_file())
    program.source.owner =
        std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
            source.owner, external);
  return program;
}

}  // namespace anymps::executorch
