// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "graph/copy_body.h"
#include "memory/refreshable.h"
#include "ops/shape_rules.h"

namespace anymps {

std::string Node::label() const { return "node \"" + name + "\""; }

Value* Graph::new_value() {
  values_.push_back(std::make_unique<Value>());
  Value* value = values_.back().get();
  value_places_[value] = std::prev(values_.end());
  return value;
}

void Graph::add_use(Node* node, size_t slot) {
  Value* value = node->inputs[slot];
  node->use_places.resize(std::max(node->use_places.size(), node->inputs.size()));
  node->use_places[slot] = value->users.size();
  value->users.push_back(node);
  value->user_slots.push_back(static_cast<uint32_t>(slot));
}

// The last use takes the place of the one that goes.
void Graph::remove_use(Node* node, size_t slot) {
  Value* value = node->inputs[slot];
  const size_t place = node->use_places[slot];
  value->users[place] = value->users.back();
  value->user_slots[place] = value->user_slots.back();
  value->users[place]->use_places[value->user_slots[place]] = place;
  value->users.pop_back();
  value->user_slots.pop_back();
}

std::string Graph::unique_name(const std::string& stem) {
  if (!by_name_.contains(stem)) return stem;
  for (;;) {
    std::string candidate = fmt::format("{}_{}", stem, ++stems_[stem]);
    if (!by_name_.contains(candidate)) return candidate;
  }
}

Value* Graph::input(std::string name, DType dtype, Dims shape) {
  return input(std::move(name), {dtype, true, std::move(shape), std::nullopt});
}

Value* Graph::input(std::string name, ValueType type) {
  require(!name.empty(), "[graph] an input needs a name");
  require(!by_name_.contains(name), "[graph] there are two values called '{}'", name);
  Value* value = new_value();
  value->type = std::move(type);
  value->type.content.reset();
  value->name = name;
  by_name_[name] = value;
  inputs_.push_back(value);
  return value;
}

Value* Graph::constant(ConstantPtr constant, std::string name) {
  Value* value = new_value();
  value->type = {constant->dtype(), true, to_dims(constant->shape()), content_of(*constant)};
  value->name = unique_name(name.empty() ? "const" : name);
  value->constant = std::move(constant);
  by_name_[value->name] = value;
  return value;
}

Value* Graph::scalar(DType dtype, double number) {
  return dispatch<kAny>(dtype, [&]<typename T>() {
    using C = Compute<T>;
    T element = [&] {
      if constexpr (kIsComplexType<T>)
        return T(static_cast<typename T::value_type>(number));
      else
        return static_cast<T>(static_cast<C>(number));
    }();
    return constant(Constant::copy(dtype, {}, std::as_bytes(std::span(&element, 1))));
  });
}

Value* Graph::ints(const std::vector<int64_t>& values) {
  return constant(Constant::of<int64_t>({std::ssize(values)}, values));
}

// Extents that only running can tell bear the name of their node, and equal names mean equal
// extents: two nodes that make such extents must not have one name. Returns the name to use.
std::string Graph::tell_apart(const std::string& node_name, const std::vector<ValueType>& types) {
  const bool open = std::any_of(types.begin(), types.end(),
                                [](const ValueType& type) { return !all_known(type.shape); });
  if (!open) return node_name;
  const std::string mark = fmt::format("@node \"{}\"", node_name);
  auto made_here = [&](const Dim& dim) {
    return !dim.known() && dim.str().find(mark) != std::string::npos;
  };
  const bool makes = std::any_of(types.begin(), types.end(), [&](const ValueType& type) {
    return std::any_of(type.shape.begin(), type.shape.end(), made_here);
  });
  if (!makes) return node_name;
  const size_t before = makers_[node_name]++;
  if (before == 0) return node_name;
  for (size_t n = before;; ++n) {
    std::string candidate = fmt::format("{}_{}", node_name, n);
    if (!makers_.contains(candidate)) return candidate;
  }
}

Node* Graph::add_node(const Op& op, std::vector<Value*> inputs, const NamedAttrs& attrs,
                      std::string name, size_t outputs) {
  auto node = std::make_unique<Node>();
  node->op = &op;
  if (name.empty()) name = op.name;
  while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
  if (outputs == 0) outputs = op.main_outputs();
  std::string label = "node \"" + name + "\"";
  try {
    node->attrs = Attrs(op, attrs);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} ({})", error.what(), label));
  }
  std::vector<const ValueType*> types;
  for (const Value* value : inputs) types.push_back(value ? &value->type : nullptr);
  std::vector<ValueType> results = InferContext::run(op, node->attrs, types, outputs, label);
  if (const std::string other = tell_apart(name, results); other != name) {
    name = other;
    makers_[name]++;
    label = fmt::format("node \"{}\"", name);
    results = InferContext::run(op, node->attrs, types, outputs, label);
  }
  node->inputs = std::move(inputs);
  node->name = name;
  for (size_t i = 0; i < outputs; ++i) {
    Value* value = new_value();
    value->type = std::move(results[i]);
    value->producer = node.get();
    value->index = static_cast<int>(i);
    value->name = unique_name(outputs == 1 ? name : fmt::format("{}.{}", name, i));
    by_name_[value->name] = value;
    node->outputs.push_back(value);
  }
  for (size_t i = 0; i < node->inputs.size(); ++i)
    if (node->inputs[i]) add_use(node.get(), i);
  Node* result = node.get();
  auto at = before_ ? places_.at(before_) : nodes_.end();
  places_[result] = nodes_.insert(at, std::move(node));
  return result;
}

Value* Graph::add(std::string_view op, std::vector<Value*> inputs, const NamedAttrs& attrs,
                  std::string name) {
  return add_node(get_op(op), std::move(inputs), attrs, std::move(name))->output();
}

void Graph::set_outputs(std::vector<Value*> outputs) {
  for (const Value* value : outputs) require(value != nullptr, "[graph] an output is null");
  for (Value* value : outputs_) value->output_places.clear();
  outputs_ = std::move(outputs);
  for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i]->output_places.push_back(i);
}

std::vector<Node*> Graph::node_list() const {
  std::vector<Node*> list;
  list.reserve(nodes_.size());
  for (const auto& node : nodes_) list.push_back(node.get());
  return list;
}

void Graph::insert_before(Node* node) { before_ = node; }

Value* Graph::find_value(std::string_view name) const {
  auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : it->second;
}

std::vector<Value*> Graph::values() const {
  std::vector<Value*> list(inputs_);
  for (const auto& value : values_)
    if (!value->is_input()) list.push_back(value.get());
  return list;
}

void Graph::rename(Value* value, const std::string& name) {
  if (value->name == name) return;
  by_name_.erase(value->name);
  value->name = unique_name(name);
  by_name_[value->name] = value;
}

void Graph::replace_uses(Value* from, Value* to) {
  if (from == to) return;
  for (size_t i = 0; i < from->users.size(); ++i) {
    from->users[i]->inputs[from->user_slots[i]] = to;
    add_use(from->users[i], from->user_slots[i]);
  }
  from->users.clear();
  from->user_slots.clear();
  if (!is_output(from)) return;
  // An output keeps its name: callers find results by it.
  if (!is_output(to) && !to->is_input()) {
    std::swap(from->name, to->name);
    by_name_[from->name] = from;
    by_name_[to->name] = to;
  }
  for (const size_t place : from->output_places) {
    outputs_[place] = to;
    to->output_places.push_back(place);
  }
  from->output_places.clear();
}

void Graph::set_input(Node* node, size_t index, Value* value) {
  if (index >= node->inputs.size()) node->inputs.resize(index + 1, nullptr);
  if (node->inputs[index]) remove_use(node, index);
  node->inputs[index] = value;
  if (value) add_use(node, index);
  while (!node->inputs.empty() && !node->inputs.back()) node->inputs.pop_back();
}

void Graph::erase(Node* node) {
  for (Value* value : node->outputs) {
    if (!value->users.empty() || is_output(value))
      fail(Code::kInternal, "[graph] {} is erased but '{}' is still used", node->label(),
           value->name);
  }
  for (size_t i = 0; i < node->inputs.size(); ++i)
    if (node->inputs[i]) remove_use(node, i);
  for (Value* value : node->outputs) {
    if (auto it = by_name_.find(value->name); it != by_name_.end() && it->second == value)
      by_name_.erase(it);
    auto place = value_places_.find(value);
    values_.erase(place->second);
    value_places_.erase(place);
  }
  if (before_ == node) before_ = nullptr;
  auto place = places_.find(node);
  nodes_.erase(place->second);
  places_.erase(place);
}

size_t Graph::erase_dead() {
  size_t erased = 0;
  for (auto it = nodes_.end(); it != nodes_.begin();) {
    Node* node = std::prev(it)->get();
    const bool used = has_effects(*node) ||
                      std::any_of(node->outputs.begin(), node->outputs.end(), [&](Value* value) {
                        return !value->users.empty() || is_output(value);
                      });
    if (used) {
      --it;
    } else {
      erase(node);
      ++erased;
    }
  }
  for (auto it = values_.begin(); it != values_.end();) {
    Value* value = it->get();
    if (value->is_constant() && value->users.empty() && !is_output(value)) {
      by_name_.erase(value->name);
      value_places_.erase(value);
      it = values_.erase(it);
    } else {
      ++it;
    }
  }
  return erased;
}

void Graph::infer_again() {
  for (const auto& node : nodes_) {
    std::vector<const ValueType*> types;
    for (const Value* value : node->inputs) types.push_back(value ? &value->type : nullptr);
    std::vector<ValueType> results =
        InferContext::run(*node->op, node->attrs, types, node->outputs.size(), node->label());
    for (size_t i = 0; i < results.size(); ++i) node->outputs[i]->type = std::move(results[i]);
  }
}

void Graph::sort() {
  std::unordered_map<const Node*, size_t> waiting;
  std::vector<Node*> ready;
  for (const auto& node : nodes_) {
    size_t inputs = 0;
    for (const Value* value : node->inputs) inputs += value && value->producer;
    waiting[node.get()] = inputs;
    if (inputs == 0) ready.push_back(node.get());
  }
  std::reverse(ready.begin(), ready.end());
  std::list<std::unique_ptr<Node>> sorted;
  while (!ready.empty()) {
    Node* node = ready.back();
    ready.pop_back();
    sorted.splice(sorted.end(), nodes_, places_.at(node));
    places_[node] = std::prev(sorted.end());
    for (const Value* value : node->outputs)
      for (Node* user : value->users)
        if (--waiting[user] == 0) ready.push_back(user);
  }
  if (!nodes_.empty()) {
    std::string names;
    for (const auto& node : nodes_) names += (names.empty() ? "" : ", ") + node->name;
    nodes_.splice(nodes_.begin(), sorted);
    fail(Code::kInvalidArgument, "[graph] these nodes form a cycle: {}", names);
  }
  nodes_ = std::move(sorted);
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  copy->name = name;
  copy->loose_names = loose_names;
  copy->makers_ = makers_;
  std::unordered_map<const Value*, Value*> twins;
  auto twin = [&](const Value* value) {
    Value* result = copy->new_value();
    result->type = value->type;
    result->name = value->name;
    result->index = value->index;
    result->constant = value->constant;
    copy->by_name_[result->name] = result;
    return twins[value] = result;
  };
  for (const Value* value : inputs_) copy->inputs_.push_back(twin(value));
  for (const auto& value : values_)
    if (value->is_constant()) twin(value.get());
  for (const auto& node : nodes_) {
    auto made = std::make_unique<Node>();
    made->op = node->op;
    made->attrs = node->attrs;
    made->name = node->name;
    for (const Value* value : node->inputs)
      made->inputs.push_back(value ? twins.at(value) : nullptr);
    for (size_t i = 0; i < made->inputs.size(); ++i)
      if (made->inputs[i]) add_use(made.get(), i);
    for (const Value* value : node->outputs) {
      made->outputs.push_back(twin(value));
      made->outputs.back()->producer = made.get();
    }
    const Node* key = made.get();
    copy->nodes_.push_back(std::move(made));
    copy->places_[key] = std::prev(copy->nodes_.end());
  }
  std::vector<Value*> outputs;
  for (const Value* value : outputs_) outputs.push_back(twins.at(value));
  copy->set_outputs(std::move(outputs));
  return copy;
}

std::optional<Dims> content_of(const Constant& constant) {
  if (constant.dtype() != DType::kI64 && constant.dtype() != DType::kI32) return std::nullopt;
  if (is_refreshable(constant)) return std::nullopt;
  const int64_t count = constant.desc().count();
  if (count > ValueType::kMaxContent || constant.shape().size() > 1) return std::nullopt;
  Dims content;
  const auto bytes = constant.data();
  for (int64_t i = 0; i < count; ++i) {
    if (constant.dtype() == DType::kI64) {
      int64_t element;
      std::memcpy(&element, bytes.get() + i * 8, 8);
      content.push_back(element);
    } else {
      int32_t element;
      std::memcpy(&element, bytes.get() + i * 4, 4);
      content.push_back(element);
    }
  }
  return content;
}

bool knows_elements(const ValueType& type) {
  return type.static_shape() && type.content && all_known(*type.content) &&
         (type.dtype == DType::kI64 || type.dtype == DType::kI32);
}

ConstantPtr constant_of_elements(const ValueType& type) {
  const std::vector<int64_t> wide = numbers(type.content).value();
  const Shape shape = to_shape(type.shape);
  if (type.dtype == DType::kI64) return Constant::of<int64_t>(shape, wide);
  return Constant::of<int32_t>(shape, std::vector<int32_t>(wide.begin(), wide.end()));
}

std::optional<double> scalar_of(const Value* value) {
  if (!value || !value->constant || is_refreshable(*value->constant)) return std::nullopt;
  const Constant& constant = *value->constant;
  const int64_t count = constant.desc().count();
  if (count < 1 || count > 4096 || !contains(kReal | kBoolean, constant.dtype()))
    return std::nullopt;
  const auto bytes = constant.data();
  const size_t size = size_of(constant.dtype());
  for (int64_t i = 1; i < count; ++i)
    if (std::memcmp(bytes.get(), bytes.get() + i * size, size) != 0) return std::nullopt;
  return dispatch<kReal | kBoolean>(constant.dtype(), [&]<typename T>() {
    T element;
    std::memcpy(&element, bytes.get(), sizeof(T));
    return static_cast<double>(static_cast<Compute<T>>(element));
  });
}

}  // namespace anymps
