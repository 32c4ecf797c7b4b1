// SPDX-License-Identifier: Apache-2.0
// Ops that hold graphs: If, Loop, Scan, SequenceMap. ONNX bodies see all names around them; ours
// see only their inputs, so what a body uses from outside is found first and handed to it. The
// types that a loop carries may change from one round to the next: a body is made with the types
// of the first round, and made again with wider ones until they hold for all rounds.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>

#include "formats/onnx/read/importer.h"
#include "graph/copy_body.h"

namespace anymps::onnx {

namespace {

constexpr int kMaxLoopDepth = 64;
constexpr int kMaxRounds = 16;  // each widens a type, and types are not that wide

const Graph& body_of(const Node& node, const char* attr) {
  const Attribute* attribute = node.find(attr);
  require(attribute && attribute->type == Attribute::Type::kGraph, "attribute '{}' is missing",
          attr);
  return attribute->graphs[0];
}

void only_attributes(const Node& node, std::initializer_list<std::string_view> known) {
  for (const Attribute& attribute : node.attributes)
    if (std::find(known.begin(), known.end(), attribute.name) == known.end())
      fail(Code::kUnsupported, "attribute '{}' is not supported", attribute.name);
}

std::vector<int64_t> ints_attr(const Node& node, const char* name) {
  const Attribute* attribute = node.find(name);
  if (!attribute) return {};
  require(attribute->type == Attribute::Type::kInts, "attribute '{}' must be INTS", name);
  return attribute->ints;
}

size_t count_attr(const Node& node, const char* name, size_t inputs) {
  const Attribute* attribute = node.find(name);
  require(attribute && attribute->type == Attribute::Type::kInt, "attribute '{}' is missing", name);
  require(attribute->i > 0 && attribute->i <= static_cast<int64_t>(inputs),
          "attribute '{}' is {}, but there are {} inputs", name, attribute->i, inputs);
  return attribute->i;
}

Value* needed(const Values& inputs, size_t i) {
  require(i < inputs.size() && inputs[i], "input {} is missing", i);
  return inputs[i];
}

ValueType type_of(const Value* value) {
  ValueType type = value->type;
  type.content.reset();
  return type;
}

ValueType scalar_type(DType dtype) { return {dtype, true, {}, std::nullopt}; }

// The type without one axis: what a scan's body gets.
ValueType slice_type(const Value* value, int64_t axis) {
  ValueType type = type_of(value);
  if (!type.ranked) return type;
  const auto rank = std::ssize(type.shape);
  type.shape.erase(type.shape.begin() + normalize_axis(axis, rank, "scan"));
  return type;
}

bool same_type(const ValueType& a, const ValueType& b) {
  return a.dtype == b.dtype && a.container == b.container && a.ranked == b.ranked &&
         a.shape == b.shape;
}

// What a carried value is before and after a round; `tag` names extents that change.
ValueType widened(const ValueType& before, const ValueType& after, const std::string& tag) {
  auto optional = [](Container container) {
    if (container == Container::kTensor) return Container::kOptional;
    return container == Container::kSequence ? Container::kOptionalSequence : container;
  };
  require(before.dtype == after.dtype && optional(before.container) == optional(after.container),
          "the body makes {} of a carried {}", to_string(after), to_string(before));
  ValueType type = before;
  if (before.container != after.container) type.container = optional(before.container);
  if (!before.ranked || !after.ranked || before.shape.size() != after.shape.size()) {
    type.ranked = false;
    type.shape.clear();
    return type;
  }
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    const Dim fresh = Dim::symbol(fmt::format("?{}.{}", tag, axis));
    if (!(before.shape[axis] == after.shape[axis])) type.shape[axis] = fresh;
  }
  return type;
}

void append_captures(Values& inputs, const std::vector<std::pair<std::string_view, Value*>>& all) {
  for (const auto& [name, value] : all)
    if (value && !value->is_constant()) inputs.push_back(value);
}

// What stands for a branch that is not valid, next to one that is.
std::shared_ptr<anymps::Graph> invalid_branch(
    const std::shared_ptr<anymps::Graph>& other,
    const std::vector<std::pair<std::string_view, Value*>>& captures, const std::string& message) {
  auto graph = std::make_shared<anymps::Graph>();
  for (const auto& [name, value] : captures)
    if (value && !value->is_constant()) graph->input(std::string(name), type_of(value));
  graph->set_outputs(graph
                         ->add_node(get_op("invalid_branch"), {},
                                    {{"like", AttrValue(other)}, {"message", message}},
                                    "invalid_branch", other->outputs().size())
                         ->outputs);
  return graph;
}

std::string name_of(const Node& node) {
  if (!node.name.empty() || node.outputs.empty()) return std::string(node.name);
  return std::string(node.outputs[0]);
}

}  // namespace

void free_names(const Graph& graph, std::vector<std::string_view>& names) {
  std::set<std::string_view> own;
  for (const ValueInfo& input : graph.inputs) own.insert(input.name);
  for (const Tensor& tensor : graph.initializers) own.insert(tensor.name);
  for (const SparseTensor& tensor : graph.sparse_initializers) own.insert(tensor.values.name);
  for (const Node& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  std::vector<std::string_view> read;
  for (const Node& node : graph.nodes) {
    read.insert(read.end(), node.inputs.begin(), node.inputs.end());
    for (const Attribute& attribute : node.attributes)
      for (const Graph& inner : attribute.graphs) free_names(inner, read);
  }
  for (const ValueInfo& output : graph.outputs) read.push_back(output.name);
  for (std::string_view name : read)
    if (!name.empty() && !own.contains(name)) names.push_back(name);
}

ONNX_READ_INSIDE(kOnnx, If, convert_if);
ONNX_READ_INSIDE(kOnnx, Loop, convert_loop);
ONNX_READ_INSIDE(kOnnx, Scan, convert_scan);
ONNX_READ_INSIDE(kOnnx, SequenceMap, convert_sequence_map);

Importer::Captures Importer::captures_of(const std::vector<const Graph*>& bodies, Scope& scope) {
  std::vector<std::string_view> names;
  for (const Graph* body : bodies) free_names(*body, names);
  std::set<std::string_view> seen;
  Captures captures;
  for (std::string_view name : names)
    if (scope.contains(name) && seen.insert(name).second)
      captures.emplace_back(name, lookup(scope, name));
  return captures;
}

Importer::GraphPtr Importer::import_body(const Graph& source, const std::vector<ValueType>& types,
                                         const Captures& captures, const Scope& outer) {
  require(source.inputs.size() == types.size(), "the body has {} inputs, must have {}",
          source.inputs.size(), types.size());
  require(++depth_ <= kMaxLoopDepth, "graphs are nested more than {} deep", kMaxLoopDepth);
  auto graph = std::make_shared<anymps::Graph>();
  graph->name = std::string(source.name);
  Target target(*graph);
  Scope scope;
  scope.opsets = outer.opsets;
  scope.target = &target;
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string_view name = source.inputs[i].name;
    require(!name.empty(), "input {} of the body has no name", i);
    scope.values[name] = graph->input(std::string(name), types[i]);
    target.named.insert(scope.values[name]);
  }
  for (const auto& [name, value] : captures) {
    if (scope.values.contains(name)) {
      // Another body reads it from outside, this one has it as an input of its own.
      if (value && !value->is_constant())
        graph->input(fmt::format("{}.outer", name), type_of(value));
      continue;
    }
    Value*& inside = scope.values[name];
    if (value && value->is_constant())
      inside = graph->constant(value->constant, std::string(name));
    else if (value)
      inside = graph->input(std::string(name), type_of(value));
    if (inside) target.named.insert(inside);
  }
  // A body may define a name that only another body of the node takes from outside.
  for (const Node& node : source.nodes)
    for (std::string_view name : node.outputs) scope.values.erase(name);
  for (const Tensor& tensor : source.initializers)
    if (std::none_of(source.inputs.begin(), source.inputs.end(),
                     [&](const ValueInfo& input) { return input.name == tensor.name; }))
      scope.values.erase(tensor.name);
  add_tensors(source, scope);
  run_nodes(source.nodes, scope);
  Values outputs;
  for (const ValueInfo& output : source.outputs) {
    outputs.push_back(lookup(scope, output.name));
    require(outputs.back() != nullptr, "output \"{}\" of the body is left out", output.name);
  }
  graph->set_outputs(std::move(outputs));
  graph->erase_dead();
  --depth_;
  return graph;
}

Importer::GraphPtr Importer::import_loop_body(const Graph& source, std::vector<ValueType>& types,
                                              size_t first, size_t count, size_t first_output,
                                              const Captures& captures, const Scope& outer) {
  const size_t id = ++bodies_;  // extents that change in one loop are not those of another
  for (int round = 0; round < kMaxRounds; ++round) {
    GraphPtr body = import_body(source, types, captures, outer);
    require(body->outputs().size() >= first_output + count,
            "the body has {} outputs, must have at least {}", body->outputs().size(),
            first_output + count);
    bool stable = true;
    for (size_t i = 0; i < count; ++i) {
      ValueType& before = types[first + i];
      const ValueType wide = widened(before, type_of(body->outputs()[first_output + i]),
                                     fmt::format("{}#{}.{}", source.name, id, i));
      stable = stable && same_type(before, wide);
      before = wide;
    }
    if (stable) return body;
  }
  fail(Code::kUnsupported, "the types that the body carries never settle");
}

// Null, and a message, for a branch that does not fit the shapes around it.
Importer::GraphPtr Importer::import_branch(const Graph& source, const Captures& captures,
                                           const Scope& outer, std::string& error) {
  const int depth = depth_;
  try {
    return import_body(source, {}, captures, outer);
  } catch (const Error& found) {
    if (found.code() != Code::kInvalidArgument) throw;
    depth_ = depth;
    error = found.what();
    return nullptr;
  }
}

Values Importer::convert_if(const Node& node, const Values& inputs, Scope& scope) {
  only_attributes(node, {"then_branch", "else_branch"});
  Value* condition = needed(inputs, 0);
  if (const auto known = known_condition(condition)) return inline_branch(node, *known, scope);
  const Graph &yes = body_of(node, "then_branch"), &no = body_of(node, "else_branch");
  const Captures captures = captures_of({&yes, &no}, scope);
  std::string then_error, else_error;
  GraphPtr then_branch = import_branch(yes, captures, scope, then_error);
  GraphPtr else_branch = import_branch(no, captures, scope, else_error);
  require(then_branch || else_branch, "neither branch is valid: then_branch: {}; else_branch: {}",
          then_error, else_error);
  if (!then_branch) then_branch = invalid_branch(else_branch, captures, then_error);
  if (!else_branch) else_branch = invalid_branch(then_branch, captures, else_error);
  Values values = {condition};
  append_captures(values, captures);
  return scope.target->graph
      .add_node(get_op("if_else"), std::move(values),
                {{"then_branch", AttrValue(then_branch)}, {"else_branch", AttrValue(else_branch)}},
                name_of(node), then_branch->outputs().size())
      ->outputs;
}

Values Importer::convert_loop(const Node& node, const Values& inputs, Scope& scope) {
  only_attributes(node, {"body"});
  const Graph& source = body_of(node, "body");
  const Captures captures = captures_of({&source}, scope);
  Values values = inputs;
  values.resize(std::max<size_t>(values.size(), 2), nullptr);
  std::vector<ValueType> types = {scalar_type(DType::kI64), scalar_type(DType::kBool)};
  for (size_t i = 2; i < values.size(); ++i) types.push_back(type_of(needed(values, i)));
  const size_t carried = values.size() - 2;
  const GraphPtr body = import_loop_body(source, types, 2, carried, 1, captures, scope);
  append_captures(values, captures);
  return scope.target->graph
      .add_node(get_op("loop"), std::move(values),
                {{"body", AttrValue(body)}, {"carried", static_cast<int64_t>(carried)}},
                name_of(node), body->outputs().size() - 1)
      ->outputs;
}

Values Importer::convert_scan(const Node& node, const Values& inputs, Scope& scope) {
  if (opset(scope, node.domain) < 9) return convert_scan_8(node, inputs, scope);
  only_attributes(node, {"body", "num_scan_inputs", "scan_input_axes", "scan_input_directions",
                         "scan_output_axes", "scan_output_directions"});
  const Graph& source = body_of(node, "body");
  const size_t scans = count_attr(node, "num_scan_inputs", inputs.size());
  const size_t states = inputs.size() - scans;
  const std::vector<int64_t> axes = ints_attr(node, "scan_input_axes");
  require(axes.empty() || axes.size() == scans, "scan_input_axes has {} entries, must have {}",
          axes.size(), scans);
  const Captures captures = captures_of({&source}, scope);
  std::vector<ValueType> types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value* value = needed(inputs, i);
    types.push_back(i < states ? type_of(value)
                               : slice_type(value, axes.empty() ? 0 : axes[i - states]));
  }
  const GraphPtr body = import_loop_body(source, types, 0, states, 0, captures, scope);
  Values values = inputs;
  append_captures(values, captures);
  return scope.target->graph
      .add_node(get_op("scan"), std::move(values),
                {{"body", AttrValue(body)},
                 {"states", static_cast<int64_t>(states)},
                 {"scan_inputs", static_cast<int64_t>(scans)},
                 {"input_axes", axes},
                 {"input_reversed", ints_attr(node, "scan_input_directions")},
                 {"output_axes", ints_attr(node, "scan_output_axes")},
                 {"output_reversed", ints_attr(node, "scan_output_directions")}},
                name_of(node), body->outputs().size())
      ->outputs;
}

// Scan of opset 8 has a batch axis before all: a scan over the batch, of a scan.
Values Importer::convert_scan_8(const Node& node, const Values& inputs, Scope& scope) {
  only_attributes(node, {"body", "num_scan_inputs", "directions"});
  const Graph& source = body_of(node, "body");
  require(!inputs.empty(), "input 1 is missing");
  const Values given(inputs.begin() + 1, inputs.end());
  const size_t scans = count_attr(node, "num_scan_inputs", given.size());
  const size_t states = given.size() - scans;
  const Captures captures = captures_of({&source}, scope);
  auto batch = std::make_shared<anymps::Graph>();
  batch->name = std::string(source.name) + ".batch";
  Values inner, outer = given;
  std::vector<ValueType> types;
  for (size_t i = 0; i < given.size(); ++i) {
    inner.push_back(batch->input(fmt::format("in.{}", i), slice_type(needed(given, i), 0)));
    types.push_back(i < states ? type_of(inner[i]) : slice_type(inner[i], 0));
  }
  Value* length = nullptr;  // how much of its sequences this item of the batch uses
  const std::vector<int64_t> reversed = ints_attr(node, "directions");
  if (inputs[0]) {
    if (std::any_of(reversed.begin(), reversed.end(), [](int64_t way) { return way != 0; }))
      fail(Code::kUnsupported, "sequence_lens of sequences that are read backwards");
    outer.push_back(inputs[0]);
    length = batch->add("unsqueeze", {batch->input("in.length", slice_type(inputs[0], 0))},
                        {{"axes", std::vector<int64_t>{0}}});
  }
  Value* whole = nullptr;
  for (size_t i = states; length && i < inner.size(); ++i) {
    whole = batch->add("shape", {inner[i]}, {{"start", 0}, {"end", 1}});
    inner[i] = batch->add("slice", {inner[i], batch->ints({0}), length});
  }
  Captures within;
  for (const auto& [name, value] : captures) {
    Value* inside = value;
    if (value && !value->is_constant()) inside = batch->input(std::string(name), type_of(value));
    within.emplace_back(name, inside);
  }
  const GraphPtr body = import_loop_body(source, types, 0, states, 0, within, scope);
  append_captures(inner, within);
  append_captures(outer, captures);
  const size_t outputs = body->outputs().size();
  Values results = batch
                       ->add_node(get_op("scan"), std::move(inner),
                                  {{"body", AttrValue(body)},
                                   {"states", static_cast<int64_t>(states)},
                                   {"scan_inputs", static_cast<int64_t>(scans)},
                                   {"input_reversed", reversed}},
                                  name_of(node), outputs)
                       ->outputs;
  if (length) {  // zeros stand for what comes after the end
    Value* missing = batch->add("sub", {whole, length});
    Value* pads = batch->add("concat", {batch->ints({0}), missing}, {{"axis", 0}});
    for (size_t i = states; i < outputs; ++i)
      results[i] = batch->add("pad", {results[i], pads, nullptr, batch->ints({0})});
  }
  batch->set_outputs(std::move(results));
  return scope.target->graph
      .add_node(get_op("scan"), std::move(outer),
                {{"body", AttrValue(batch)},
                 {"states", int64_t{0}},
                 {"scan_inputs", static_cast<int64_t>(given.size() + (length ? 1 : 0))}},
                name_of(node), outputs)
      ->outputs;
}

Values Importer::convert_sequence_map(const Node& node, const Values& inputs, Scope& scope) {
  only_attributes(node, {"body"});
  const Graph& source = body_of(node, "body");
  const Captures captures = captures_of({&source}, scope);
  for (const auto& [name, value] : captures)
    if (value && value->type.container != Container::kTensor)
      fail(Code::kUnsupported, "the body uses \"{}\", a {}, from outside", name,
           anymps::name(value->type.container));
  const size_t id = ++bodies_;
  std::vector<ValueType> types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    types.push_back(type_of(needed(inputs, i)));
    if (types[i].container != Container::kSequence) continue;
    types[i].container = Container::kTensor;
    for (size_t axis = 0; axis < types[i].shape.size(); ++axis)  // elements need not be alike
      if (!types[i].shape[axis].known())
        types[i].shape[axis] = Dim::symbol(fmt::format("?{}#{}.{}.{}", source.name, id, i, axis));
  }
  const GraphPtr body = import_body(source, types, captures, scope);
  Values values = inputs;
  append_captures(values, captures);
  return scope.target->graph
      .add_node(get_op("sequence_map"), std::move(values), {{"body", AttrValue(body)}},
                name_of(node), body->outputs().size())
      ->outputs;
}

}  // namespace anymps::onnx
