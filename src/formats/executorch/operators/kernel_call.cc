// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/operators/kernel_call.h"

#include <algorithm>

#include "formats/executorch/converter_table.h"
#include "formats/executorch/effects.h"

namespace anymps::executorch {

KernelArguments::KernelArguments(Graph& graph, const Method& method, const KernelCall& call,
                                 const Values& current, std::string name, const char* engine_op)
    : NodeBuilder(graph, std::move(name)),
      engine_op(engine_op),
      method_(method),
      call_(call),
      current_(current) {
  check(!call.args.empty(), "the call has no arguments");
  const int32_t last = call.args.back();
  const auto* list = std::get_if<TensorList>(&at(last));
  results_ = list ? list->items : std::vector<int32_t>{last};
  for (int32_t result : results_) at(result);
}

int32_t KernelArguments::index(size_t i) const {
  check(i < call_.args.size(), "argument {} is missing, there are {}", i, call_.args.size());
  return call_.args[i];
}

const EValue& KernelArguments::at(int32_t index) const {
  check(index >= 0 && static_cast<size_t>(index) < method_.values.size(),
        "value {} does not exist, there are {}", index, method_.values.size());
  return method_.values[index];
}

const EValue& KernelArguments::value(size_t i) const { return at(index(i)); }

Value* KernelArguments::current(int32_t index) const {
  return index >= 0 && static_cast<size_t>(index) < current_.size() ? current_[index] : nullptr;
}

template <typename T>
const T& KernelArguments::as(size_t i, const char* kind) const {
  const EValue& found = value(i);
  const T* held = std::get_if<T>(&found);
  check(held != nullptr, "argument {} must be {}, it is {}", i, kind, kind_of(found));
  return *held;
}

bool KernelArguments::is_none(size_t i) const { return std::holds_alternative<None>(value(i)); }
bool KernelArguments::is_tensor(size_t i) const { return std::holds_alternative<Tensor>(value(i)); }

Value* KernelArguments::tensor(size_t i) const {
  as<Tensor>(i, "a Tensor");
  Value* held = current(index(i));
  check(held != nullptr, "argument {} is value {}, which nothing has been written to", i, index(i));
  return held;
}

Value* KernelArguments::maybe_tensor(size_t i) const { return is_none(i) ? nullptr : tensor(i); }

Values KernelArguments::tensors(size_t i) const {
  Values result;
  for (int32_t item : as<TensorList>(i, "a list of tensors").items) {
    if (item < 0) {
      result.push_back(nullptr);
      continue;
    }
    check(std::holds_alternative<Tensor>(at(item)), "value {} of the list is {}, not a Tensor",
          item, kind_of(at(item)));
    check(current(item) != nullptr, "nothing has been written to value {} of the list", item);
    result.push_back(current(item));
  }
  return result;
}

std::optional<int64_t> KernelArguments::known_int(int32_t index) const {
  if (Value* computed = current(index)) {
    const auto& content = computed->type.content;
    if (content && content->size() == 1 && (*content)[0].known()) return (*content)[0].value();
    return std::nullopt;
  }
  const EValue& held = at(index);
  if (const auto* number = std::get_if<int64_t>(&held)) return *number;
  if (const auto* number = std::get_if<bool>(&held)) return *number;
  fail(Code::kInvalidArgument, "value {} must be an Int, it is {}", index, kind_of(held));
}

std::optional<double> KernelArguments::known(int32_t index) const {
  if (Value* computed = current(index)) {
    if (computed->is_constant()) return scalar_of(computed);
    const auto number = known_int(index);
    return number ? std::optional<double>(static_cast<double>(*number)) : std::nullopt;
  }
  const EValue& held = at(index);
  if (const auto* number = std::get_if<double>(&held)) return *number;
  return static_cast<double>(*known_int(index));
}

int64_t KernelArguments::i(size_t i) const {
  const auto number = known_int(index(i));
  if (!number)
    unsupported("argument {} is computed while the program runs, and is needed before", i);
  return *number;
}

double KernelArguments::f(size_t i) const {
  const auto number = known(index(i));
  if (!number)
    unsupported("argument {} is computed while the program runs, and is needed before", i);
  return *number;
}

bool KernelArguments::b(size_t i) const { return this->i(i) != 0; }
std::string KernelArguments::s(size_t i) const { return as<std::string>(i, "a String"); }

Ints KernelArguments::ints(size_t i) const {
  Ints result;
  for (int32_t item : as<IntList>(i, "a list of integers").items) {
    const auto number = known_int(item);
    if (!number)
      unsupported(
          "entry {} of argument {} is computed while the program runs, and is needed before",
          result.size(), i);
    result.push_back(*number);
  }
  return result;
}

std::optional<int64_t> KernelArguments::maybe_i(size_t i) const {
  return is_none(i) ? std::nullopt : std::optional(this->i(i));
}
std::optional<double> KernelArguments::maybe_f(size_t i) const {
  return is_none(i) ? std::nullopt : std::optional(f(i));
}
std::optional<Ints> KernelArguments::maybe_ints(size_t i) const {
  return is_none(i) ? std::nullopt : std::optional(ints(i));
}
std::optional<std::string> KernelArguments::maybe_s(size_t i) const {
  return is_none(i) ? std::nullopt : std::optional(s(i));
}
std::vector<double> KernelArguments::floats(size_t i) const {
  return as<std::vector<double>>(i, "a list of doubles");
}
std::vector<bool> KernelArguments::bools(size_t i) const {
  return as<std::vector<bool>>(i, "a list of bools");
}

bool KernelArguments::is_known(size_t i) const {
  if (const auto* list = std::get_if<IntList>(&value(i)))
    return std::all_of(list->items.begin(), list->items.end(),
                       [this](int32_t item) { return known_int(item).has_value(); });
  return is_none(i) || known(index(i)).has_value();
}

Value* KernelArguments::integer(int64_t value, DType dtype) {
  return cast(graph.constant(Constant::of<int64_t>({}, {value})), dtype);
}

Value* KernelArguments::number_of(int32_t index, DType dtype) {
  if (Value* computed = current(index)) return cast(computed, dtype);
  const EValue& held = at(index);
  if (const auto* number = std::get_if<double>(&held)) return graph.scalar(dtype, *number);
  const auto number = known_int(index);
  constexpr int64_t kExact = int64_t{1} << 53;
  return *number >= -kExact && *number <= kExact ? graph.scalar(dtype, static_cast<double>(*number))
                                                 : integer(*number, dtype);
}

Value* KernelArguments::number(size_t i, DType dtype) { return number_of(index(i), dtype); }

Value* KernelArguments::shape(size_t i) {
  if (is_known(i)) return graph.ints(ints(i));
  Values parts;
  for (int32_t item : as<IntList>(i, "a list of integers").items)
    parts.push_back(add("reshape", {number_of(item, DType::kI64)}, {{"shape", Ints{1}}}));
  return add("concat", parts, {{"axis", 0}});
}

DType KernelArguments::number_dtype(size_t i) const {
  if (Value* computed = current(index(i)))
    return is_float(computed->dtype()) ? DType::kF32 : computed->dtype();
  const EValue& held = value(i);
  if (std::holds_alternative<bool>(held)) return DType::kBool;
  if (std::holds_alternative<int64_t>(held)) return DType::kI64;
  as<double>(i, "a number");
  return DType::kF32;
}

const Tensor& KernelArguments::declared(size_t i) const { return as<Tensor>(i, "a Tensor"); }

const Tensor& KernelArguments::result(size_t i) const {
  check(i < results_.size(), "result {} is missing, there are {}", i, results_.size());
  const EValue& held = at(results_[i]);
  const auto* tensor = std::get_if<Tensor>(&held);
  check(tensor != nullptr, "result {} must be a Tensor, it is {}", i, kind_of(held));
  return *tensor;
}

int64_t KernelArguments::axis(size_t i, const Value* of) const {
  return normalize(this->i(i), std::max<int64_t>(rank(of), 1));
}

Ints KernelArguments::axes(size_t i, const Value* of) const {
  Ints result = maybe_ints(i).value_or(Ints{});
  for (int64_t& axis : result) axis = normalize(axis, std::max<int64_t>(rank(of), 1));
  return result;
}

namespace {

using KernelTable = ConverterTable<KernelConverter>;

KernelTable& registered_kernels() {
  static auto* table = new KernelTable();
  return *table;
}

// A function of one tensor that the op table has alike. Integers that the op does not take, since
// its result is a fraction, count as f32.
Values convert_same(KernelArguments& c) {
  Value* x = c.tensor(0);
  const DType dtype = x->dtype();
  const bool whole = is_int(dtype) || dtype == DType::kBool;
  if (whole && !contains(get_op(c.engine_op).inputs[0].dtypes, dtype)) x = c.cast(x, DType::kF32);
  return {c.add(c.engine_op, {x})};
}

// With the ops whose records have torch's name and that no converter is registered for.
const KernelTable& kernel_table() {
  static const auto* complete = [] {
    auto* table = new KernelTable(registered_kernels());
    for (const Op* op : all_ops()) {
      if (op->aten.empty()) continue;
      const std::string name = fmt::format("aten::{}.out", op->aten);
      table->add_if_new(name, {name.c_str(), convert_same, op->name.c_str()});
    }
    return table;
  }();
  return *complete;
}

const KernelRefusal kRefused[] = {
    {"aten::resize_", "a tensor is not resized in place"},
    {"aten::sym_is_contiguous", "tensors have no strides that a program could see"},
    {"aten::sym_stride.int", "tensors have no strides that a program could see"},
    {"aten::sym_storage_offset", "tensors have no storage that a program could see"},
    {"llama::update_cache_with_indices.out", "positions of a cache are a range"},
};

// What torch lets a result be stored as: not a fraction as an integer, not a number as a bool.
int kind_rank(DType dtype) {
  return dtype == DType::kBool ? 0 : is_int(dtype) ? 1 : is_float(dtype) ? 2 : 3;
}

void check_shape(const Tensor& declared, const Value& value, size_t i) {
  if (declared.dynamism != Tensor::Dynamism::kStatic || !value.type.static_shape()) return;
  const Shape shape = to_shape(value.shape());
  require(std::equal(shape.begin(), shape.end(), declared.sizes.begin(), declared.sizes.end()),
          "result {} has the shape {}, the program declares [{}]", i, to_string(shape),
          fmt::join(declared.sizes, ", "));
}

}  // namespace

KernelConverters::KernelConverters(std::initializer_list<KernelConverter> list) {
  for (const KernelConverter& converter : list)
    for (const std::string& op : converter.ops.list) registered_kernels().add(op, converter);
}

const KernelConverter* find_kernel(std::string_view op) { return kernel_table().find(op); }

std::vector<std::string> supported_kernels() {
  std::vector<std::string> names;
  for (const auto& [name, converter] : kernel_table().all()) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::span<const KernelRefusal> refused_kernels() { return kRefused; }

void convert_kernel(Graph& graph, const Method& method, const KernelCall& call, Values& current,
                    const std::string& name) {
  const KernelConverter* converter = find_kernel(call.op);
  if (!converter) {
    for (const KernelRefusal& refusal : kRefused)
      if (refusal.op == call.op)
        fail(Code::kUnsupported, "{} is not supported: {}", call.op, refusal.reason);
    fail(Code::kUnsupported, "operator {} is not known", call.op);
  }
  KernelArguments arguments(graph, method, call, current, name, converter->engine_op);
  Values values = converter->convert(arguments);
  std::vector<int32_t> places = arguments.results();
  if (is_in_place(converter->changes) && !values.empty()) values.push_back(values[0]);
  for (const size_t i : converter->changes) places.push_back(call.args.at(i));
  require(values.size() == places.size(), "{} gives {} results, the program takes {}", call.op,
          values.size(), places.size());
  current.resize(std::max(current.size(), method.values.size()), nullptr);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;  // a result that the call does not ask for
    const EValue& target = method.values.at(places[i]);
    if (const auto* tensor = std::get_if<Tensor>(&target)) {
      require(kind_rank(values[i]->dtype()) <= kind_rank(tensor->dtype),
              "result {} of {} is {}, the program declares {}", i, call.op,
              anymps::name(values[i]->dtype()), anymps::name(tensor->dtype));
      check_shape(*tensor, *values[i], i);
      values[i] = arguments.cast(values[i], tensor->dtype);
    }
    current[places[i]] = values[i];
  }
}

}  // namespace anymps::executorch
