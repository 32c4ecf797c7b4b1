// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/memory.h"

#include <algorithm>
#include <cstring>

#include "formats/executorch/program/bundle.h"

namespace anymps::executorch {

namespace {

constexpr size_t kAlignment = 16;
constexpr size_t kSmall = 16 << 10;  // copied at once: not worth a recipe

Shape shape_of(const Tensor& tensor) { return {tensor.sizes.begin(), tensor.sizes.end()}; }

size_t bytes_of(const Tensor& tensor) { return byte_count(tensor.dtype, shape_of(tensor)); }

}  // namespace

ConstantPtr to_constant(const Tensor& tensor, const Source& source) {
  const std::string_view data = *tensor.data;
  const Shape shape = shape_of(tensor);
  const auto recipe = [tensor, data, owner = source.owner](std::byte* out) {
    to_logical_order(tensor, data, out);
    if (tensor.dtype == DType::kBool)
      std::transform(out, out + data.size(), out,
                     [](std::byte b) { return std::byte{b != std::byte{0}}; });
  };
  const bool plain = in_logical_order(tensor) && tensor.dtype != DType::kBool &&
                     reinterpret_cast<uintptr_t>(data.data()) % kAlignment == 0;
  if (data.size() > kSmall && plain)
    return Constant::view(tensor.dtype, shape, data.data(), source.owner, source.mapped);
  if (data.size() > kSmall) return Constant::lazy(tensor.dtype, shape, recipe);
  std::vector<std::byte> bytes(data.size());
  recipe(bytes.data());
  return Constant::copy(tensor.dtype, shape, bytes);
}

Memory::Memory(Graph& graph, const Program& program, const Method& method)
    : graph(graph),
      program(program),
      method(method),
      current(method.values.size(), nullptr),
      moved_(method.values.size(), false),
      lost_(method.values.size(), false) {}

Memory::Memory(Graph& body, const Memory& outside)
    : graph(body),
      program(outside.program),
      method(outside.method),
      current(outside.method.values.size(), nullptr),
      is_body_(true),
      moved_(outside.moved_),
      lost_(outside.lost_),
      states_(outside.states_) {}

const Tensor* Memory::placed(int32_t id) const {
  const auto* tensor = std::get_if<Tensor>(&at(id));
  if (!tensor || !tensor->planned || moved_[id]) return nullptr;
  return bytes_of(*tensor) ? tensor : nullptr;
}

Value* Memory::constant(const Tensor& tensor, int32_t id) {
  return graph.constant(to_constant(tensor, program.source),
                        tensor.name.empty() ? fmt::format("constant{}", id) : tensor.name);
}

Value* Memory::state(const Tensor& tensor, int32_t id) {
  const std::string name = fmt::format("state{}", id);
  Value* initial = tensor.data
                       ? constant(tensor, id)
                       : graph.constant(Constant::lazy(tensor.dtype, shape_of(tensor),
                                                       [size = bytes_of(tensor)](std::byte* out) {
                                                         std::memset(out, 0, size);
                                                       }),
                                        name + "_initial");
  Value* value =
      graph.add("read_variable", {initial},
                {{"variable", tensor.name.empty() ? name : tensor.name + "#" + name}}, name);
  states_.emplace(id, value);
  return value;
}

Value* Memory::view(const Tensor& tensor, int32_t id, int32_t of) {
  const Tensor& base = std::get<Tensor>(at(of));
  Value* value = current[of];
  if (base.dtype != tensor.dtype || bytes_of(base) != bytes_of(tensor))
    fail(Code::kCorrupt,
         "value {} lies in planned memory where value {}, of another size or type, was written "
         "since",
         id, of);
  const bool reordered = !in_logical_order(base) || !in_logical_order(tensor);
  if (base.sizes == tensor.sizes && (!reordered || base.dim_order == tensor.dim_order))
    return value;
  if (base.dynamism != Tensor::Dynamism::kStatic || tensor.dynamism != Tensor::Dynamism::kStatic)
    fail(Code::kUnsupported, "value {} views value {}, of which the shape may change", id, of);
  const std::string name = value->name + "_view";
  if (!reordered) return graph.add("reshape", {value}, {{"shape", tensor.sizes}}, name);
  // The elements as they lie in memory, and in the order of the axes again.
  const Ints stored(base.dim_order.begin(), base.dim_order.end());
  Ints sizes, perm(tensor.sizes.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    sizes.push_back(tensor.sizes[tensor.dim_order[i]]);
    perm[tensor.dim_order[i]] = static_cast<int64_t>(i);
  }
  if (!stored.empty()) value = graph.add("transpose", {value}, {{"perm", stored}}, name);
  value = graph.add("reshape", {value}, {{"shape", sizes}}, name);
  return perm.empty() ? value : graph.add("transpose", {value}, {{"perm", perm}}, name);
}

bool Memory::can_load(int32_t id) const {
  if (current[id]) return true;
  const auto* tensor = std::get_if<Tensor>(&at(id));
  if (!tensor) return false;
  if (tensor->data || bytes_of(*tensor) == 0) return true;
  return tensor->planned && !lost_[id];
}

bool Memory::holds(int32_t id) const {
  if (current[id]) return true;
  const auto* tensor = std::get_if<Tensor>(&at(id));
  if (tensor && tensor->data) return true;
  const Tensor* with_place = placed(id);
  return with_place && last_.contains({with_place->memory, with_place->offset});
}

void Memory::load(int32_t id) {
  Value*& value = current[id];
  const auto* tensor = std::get_if<Tensor>(&at(id));
  if (!tensor) return;
  if (const Tensor* with_place = placed(id)) {
    const auto last = last_.find({with_place->memory, with_place->offset});
    if (last != last_.end() && last->second != id) {
      value = view(*tensor, id, last->second);
      return;
    }
  }
  if (value) return;
  if (tensor->is_constant()) {
    value = constant(*tensor, id);
  } else if (bytes_of(*tensor) == 0) {
    value = graph.constant(Constant::copy(tensor->dtype, shape_of(*tensor), {}));
  } else if (tensor->planned && !is_body_ && !lost_[id]) {
    value = state(*tensor, id);
    wrote(id);
  } else {
    fail(Code::kCorrupt, "value {} is read, but nothing was written to it", id);
  }
}

Value* Memory::tensor(int32_t id) {
  load(id);
  if (Value* value = current[id]) return value;
  const EValue& value = at(id);
  if (const auto* number = std::get_if<int64_t>(&value))
    return graph.constant(Constant::of<int64_t>({}, {*number}));
  if (const auto* number = std::get_if<double>(&value))
    return graph.constant(Constant::of<double>({}, {*number}));
  if (const auto* flag = std::get_if<bool>(&value)) {
    const std::byte byte{*flag};
    return graph.constant(Constant::copy(DType::kBool, {}, {&byte, 1}));
  }
  fail(Code::kCorrupt, "value {} is a {}, not a Tensor", id, kind_of(value));
}

void Memory::wrote(int32_t id) {
  lost_[id] = false;
  if (const Tensor* tensor = placed(id)) last_[{tensor->memory, tensor->offset}] = id;
}

void Memory::write(int32_t id, Value* value) {
  if (const auto* tensor = std::get_if<Tensor>(&at(id))) {
    if (value->dtype() != tensor->dtype)
      fail(Code::kInvalidArgument, "value {} is {}, but the file says {}", id, name(value->dtype()),
           name(tensor->dtype));
    const bool fixed = tensor->dynamism == Tensor::Dynamism::kStatic;
    bool fits = !value->type.ranked || value->shape().size() == tensor->sizes.size();
    for (size_t axis = 0; fits && fixed && value->type.ranked && axis < tensor->sizes.size();
         ++axis)
      fits = !value->shape()[axis].known() || value->shape()[axis].is(tensor->sizes[axis]);
    if (!fits)
      fail(Code::kInvalidArgument, "value {} is {}, but the file says [{}]", id,
           to_string(value->type), fmt::join(tensor->sizes, ", "));
  }
  current[id] = value;
  wrote(id);
}

void Memory::move(int32_t from, int32_t to) {
  load(from);
  current[to] = current[from];
  if (!current[to]) current[to] = tensor(from);
  moved_[to] = true;
}

void Memory::take(int32_t id, Value* value, bool moved) {
  current[id] = value;
  moved_[id] = moved;
  wrote(id);
}

void Memory::forget(int32_t id) {
  if (!std::holds_alternative<Tensor>(at(id))) return;
  if (const Tensor* tensor = placed(id)) {
    const auto last = last_.find({tensor->memory, tensor->offset});
    if (last != last_.end() && last->second == id) last_.erase(last);
  }
  current[id] = nullptr;
  lost_[id] = true;
}

bool Memory::is_last(int32_t id) const {
  const Tensor* tensor = placed(id);
  if (!tensor) return true;
  const auto last = last_.find({tensor->memory, tensor->offset});
  return last == last_.end() || last->second == id;
}

bool Memory::is_state(int32_t id) const {
  const auto* tensor = std::get_if<Tensor>(&at(id));
  if (tensor && tensor->is_state()) return true;
  if (!placed(id)) return false;
  return std::any_of(states_.begin(), states_.end(), [&](const auto& state) {
    const Tensor& other = std::get<Tensor>(at(state.first));
    return other.memory == tensor->memory && other.offset == tensor->offset;
  });
}

void Memory::save_states() {
  for (const auto& [id, at_start] : states_) {
    load(id);
    Value* now = current[id];
    Node* read = at_start->producer;
    if (now != at_start) {
      graph.add("assign_variable", {now}, {{"variable", read->attrs.s("variable")}},
                at_start->name + "_assign");
      continue;
    }
    if (!std::get<Tensor>(at(id)).data)
      fail(Code::kCorrupt, "value {} is read, but nothing is ever written to it", id);
    Value* content = read->input(0);
    graph.replace_uses(at_start, content);
    std::replace(current.begin(), current.end(), at_start, content);
    graph.erase(read);
  }
}

}  // namespace anymps::executorch
