// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/read/import.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "formats/onnx/read/importer.h"
#include "formats/onnx/read/same_op.h"

namespace anymps::onnx {

namespace {

constexpr int kMaxCallDepth = 64;              // of function calls and branches
constexpr size_t kMaxNodes = size_t{1} << 21;  // calls of calls of calls grow fast

// Attributes of a function's body may stand for attributes of the call.
void fill_in(Node& node, const Node& call, const Function& function) {
  std::vector<Attribute> filled;
  for (Attribute& attribute : node.attributes) {
    for (Graph& graph : attribute.graphs)
      for (Node& inner : graph.nodes) fill_in(inner, call, function);
    if (attribute.ref_attr_name.empty()) {
      filled.push_back(std::move(attribute));
      continue;
    }
    const Attribute* given = call.find(attribute.ref_attr_name);
    for (const Attribute& standard : function.attribute_defaults)
      if (!given && standard.name == attribute.ref_attr_name) given = &standard;
    if (!given) continue;
    filled.push_back(*given);
    filled.back().name = attribute.name;
  }
  node.attributes = std::move(filled);
}

// Null where the file says no type that an input could have: then nobody can feed it.
std::optional<Value> default_of(const ValueInfo& info) {
  try {
    Value value;
    value.name = std::string(info.name);
    value.type = to_type(info);
    return value;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

int64_t Importer::opset(const Scope& scope, std::string_view domain) {
  for (const OpsetImport& import : *scope.opsets)
    if (import.domain == domain || (is_onnx(import.domain) && is_onnx(domain)))
      return import.version;
  fail(Code::kInvalidArgument, "the model imports no opset of domain \"{}\"", domain);
}

const Function* Importer::find_function(const Node& node) const {
  for (const Function& function : model_.functions)
    if (function.name == node.op_type && function.domain == node.domain &&
        function.overload == node.overload)
      return &function;
  return nullptr;
}

void Importer::check_supported(const std::vector<Node>& nodes) const {
  std::map<std::string, std::vector<std::string>> missing;
  std::set<const Function*> seen;
  std::vector<const std::vector<Node>*> todo = {&nodes};
  while (!todo.empty()) {
    const std::vector<Node>& list = *todo.back();
    todo.pop_back();
    for (size_t i = 0; i < list.size(); ++i) {
      for (const Attribute& attribute : list[i].attributes)
        for (const Graph& graph : attribute.graphs) todo.push_back(&graph.nodes);
      if (const Function* function = find_function(list[i])) {
        if (seen.insert(function).second) todo.push_back(&function->nodes);
      } else if (!find_converter(list[i].domain, list[i].op_type)) {
        missing[full_name(list[i].domain, list[i].op_type)].push_back(
            fmt::format("{} \"{}\"", i, list[i].name));
      }
    }
  }
  if (missing.empty()) return;
  std::string text;
  for (auto& [op, places] : missing) {
    const size_t count = places.size();
    if (count > 4) places.resize(4);
    text +=
        fmt::format("{}{} (node {}", text.empty() ? "" : "; ", op, fmt::join(places, ", node "));
    text += count > 4 ? fmt::format(" and {} more)", count - 4) : ")";
  }
  fail(Code::kUnsupported, "{} op{} not supported: {}", missing.size(),
       missing.size() == 1 ? " is" : "s are", text);
}

void Importer::add_tensors(const Graph& graph, Scope& scope) {
  for (const Tensor& tensor : graph.initializers) {
    require(!tensor.name.empty(), "an initializer has no name");
    require(scope.tensors.emplace(tensor.name, &tensor).second,
            "initializer \"{}\": there are two of this name", tensor.name);
  }
  for (const SparseTensor& tensor : graph.sparse_initializers) {
    const std::string_view name = tensor.values.name;
    require(!name.empty(), "a sparse initializer has no name");
    require(!scope.tensors.contains(name) && scope.sparse.emplace(name, &tensor).second,
            "initializer \"{}\": there are two of this name", name);
  }
}

// Initializers that are inputs too and are wanted as such lose their value.
void Importer::open_defaults(Scope& scope) {
  std::set<std::string_view> listed, with_default;
  for (const ValueInfo& info : model_.graph.inputs) {
    listed.insert(info.name);
    if (scope.tensors.contains(info.name) || scope.sparse.contains(info.name))
      with_default.insert(info.name);
  }
  for (const std::string& name : defaults_->wanted) {
    if (!listed.contains(name))
      fail(Code::kNotFound, "there is no input \"{}\"; inputs with a default: {}", name,
           with_default.empty() ? "none" : fmt::format("{}", fmt::join(with_default, ", ")));
    scope.tensors.erase(name);
    scope.sparse.erase(name);
  }
}

void Importer::add_inputs(Scope& scope) {
  for (const ValueInfo& info : model_.graph.inputs) {
    if (scope.tensors.contains(info.name) || scope.sparse.contains(info.name)) {
      if (auto value = default_of(info); value && defaults_)
        defaults_->found.push_back(std::move(*value));
      continue;
    }
    require(!info.name.empty(), "an input has no name");
    require(!scope.values.contains(info.name), "input \"{}\": there are two of this name",
            info.name);
    try {
      Value* value = main_.graph.input(std::string(info.name), to_type(info));
      scope.values[info.name] = value;
      main_.named.insert(value);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("input \"{}\": {}", info.name, error.what()));
    }
  }
}

Value* Importer::lookup(Scope& scope, std::string_view name) {
  for (Scope* at = &scope; at; at = at->parent) {
    if (auto found = at->values.find(name); found != at->values.end()) return found->second;
    auto dense = at->tensors.find(name);
    auto sparse = at->sparse.find(name);
    if (dense == at->tensors.end() && sparse == at->sparse.end()) continue;
    try {
      ConstantPtr constant =
          dense != at->tensors.end() ? to_constant(*dense->second) : to_constant(*sparse->second);
      return at->values[name] = at->target->graph.constant(std::move(constant), std::string(name));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("initializer \"{}\": {}", name, error.what()));
    }
  }
  fail(Code::kInvalidArgument, "\"{}\" is made by no node and is no input or initializer", name);
}

void Importer::run_nodes(const std::vector<Node>& nodes, Scope& scope) {
  check_supported(nodes);
  for (size_t i : running_order(nodes, scope)) {
    try {
      run_node(nodes[i], scope);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", label(nodes[i], i), error.what()));
    }
  }
}

void Importer::run_node(const Node& node, Scope& scope) {
  if (++nodes_done_ > kMaxNodes)
    fail(Code::kUnsupported, "the functions of the model unfold to more than {} nodes", kMaxNodes);
  bind_outputs(node, convert(node, scope), scope);
}

Values Importer::convert(const Node& node, Scope& scope) {
  Values inputs;
  for (std::string_view name : node.inputs)
    inputs.push_back(name.empty() ? nullptr : lookup(scope, name));
  if (const Function* function = find_function(node))
    return inline_function(*function, node, std::move(inputs), scope);
  const int64_t version = opset(scope, node.domain);
  const Converter& converter = *find_converter(node.domain, node.op_type);
  if (converter.inside) return (this->*converter.inside)(node, inputs, scope);
  std::string name(node.name);
  if (name.empty() && !node.outputs.empty()) name = node.outputs[0];
  Call call(scope.target->graph, node, version, std::move(inputs), name);
  Values values = converter.same_as ? read_same(call, *converter.same_as) : converter.convert(call);
  call.check_all_read();
  return values;
}

void Importer::bind_outputs(const Node& node, const Values& values, Scope& scope) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string_view name = node.outputs[i];
    if (name.empty()) continue;
    if (i >= values.size() || !values[i])
      fail(Code::kUnsupported, "output {} (\"{}\") is not supported", i, name);
    scope.values[name] = values[i];
    if (values[i]->producer && scope.target->named.insert(values[i]).second)
      scope.target->graph.rename(values[i], std::string(name));
  }
}

Values Importer::inline_function(const Function& function, const Node& node, Values inputs,
                                 Scope& outer) {
  require(++depth_ <= kMaxCallDepth, "function calls are nested more than {} deep", kMaxCallDepth);
  require(inputs.size() <= function.inputs.size(), "the function takes {} inputs, {} are given",
          function.inputs.size(), inputs.size());
  Scope scope;
  scope.target = outer.target;
  scope.opsets = function.opset_imports.empty() ? &model_.opset_imports : &function.opset_imports;
  inputs.resize(function.inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i)
    require(scope.values.emplace(function.inputs[i], inputs[i]).second,
            "the function has two inputs called \"{}\"", function.inputs[i]);
  std::vector<Node> body = function.nodes;
  for (Node& inner : body) fill_in(inner, node, function);
  run_nodes(body, scope);
  Values outputs;
  for (std::string_view name : function.outputs) outputs.push_back(lookup(scope, name));
  --depth_;
  return outputs;
}

// A branch that is known to be taken stands in place of the node.
Values Importer::inline_branch(const Node& node, bool condition, Scope& scope) {
  require(++depth_ <= kMaxCallDepth, "branches are nested more than {} deep", kMaxCallDepth);
  const char* which = condition ? "then_branch" : "else_branch";
  const Attribute* attribute = node.find(which);
  require(attribute && attribute->type == Attribute::Type::kGraph, "attribute '{}' is missing",
          which);
  Values outputs = run_graph(attribute->graphs[0], {}, scope);
  --depth_;
  return outputs;
}

Values Importer::run_graph(const Graph& graph, const Values& inputs, Scope& scope) {
  Scope inner;
  inner.parent = &scope;
  inner.target = scope.target;
  inner.opsets = scope.opsets;
  for (size_t i = 0; i < inputs.size(); ++i) inner.values[graph.inputs[i].name] = inputs[i];
  add_tensors(graph, inner);
  run_nodes(graph.nodes, inner);
  Values outputs;
  for (const ValueInfo& output : graph.outputs) outputs.push_back(lookup(inner, output.name));
  return outputs;
}

void Importer::set_outputs(Scope& scope) {
  Values outputs;
  anymps::Graph& graph = main_.graph;
  for (const ValueInfo& info : model_.graph.outputs) {
    if (!scope.contains(info.name))
      fail(Code::kInvalidArgument, "output \"{}\" is made by no node", info.name);
    Value* value = lookup(scope, info.name);
    // Callers find a result by its name, so each output is a separate value.
    if (!value->producer || std::find(outputs.begin(), outputs.end(), value) != outputs.end())
      value = graph.add(
          value->type.container == Container::kTensor ? "identity" : "container_identity", {value});
    if (Value* other = graph.find_value(info.name); other && other != value) {
      require(!other->is_input(), "output \"{}\" is also the name of an input", info.name);
      graph.rename(other, fmt::format("{}_inner", info.name));
    }
    graph.rename(value, std::string(info.name));
    if (info.elem_type != DataType::kUndefined)
      require(value->dtype() == to_dtype(info.elem_type),
              "output \"{}\" is {}, but the file says {}", info.name, anymps::name(value->dtype()),
              onnx::name(info.elem_type));
    outputs.push_back(value);
  }
  require(!outputs.empty(), "the graph has no outputs");
  graph.set_outputs(std::move(outputs));
}

void Importer::run() {
  main_.graph.name = std::string(model_.graph.name);
  Scope scope;
  scope.target = &main_;
  scope.opsets = &model_.opset_imports;
  add_tensors(model_.graph, scope);
  if (defaults_) open_defaults(scope);
  add_inputs(scope);
  run_nodes(model_.graph.nodes, scope);
  set_outputs(scope);
  main_.graph.erase_dead();
}

std::unique_ptr<anymps::Graph> import_model(const Model& model, DefaultInputs* defaults) {
  auto graph = std::make_unique<anymps::Graph>();
  graph->loose_names = true;
  try {
    Importer(model, *graph, defaults).run();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("[onnx] {}: {}", model.file, error.what()));
  }
  return graph;
}

}  // namespace anymps::onnx
