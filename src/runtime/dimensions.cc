// SPDX-License-Identifier: Apache-2.0
// Shapes made concrete: from the feeds, and from dimensions that are bound by their names.
#include <algorithm>
#include <unordered_set>

#include "runtime/executable.h"
#include "runtime/plan.h"
#include "runtime/structural.h"

namespace anymps {

std::string symbol_name(const Dim& dim) {
  const std::string text = dim.str();
  return dim.known() || dim.limit() == Dim::kNoLimit ? text : text.substr(0, text.rfind("<="));
}

Dim symbol_of(const Node& node) { return Dim::parse(node.attrs.s("symbol")); }

int64_t Dimensions::at(const Node& node) const {
  const auto found = std::find(names.begin(), names.end(), symbol_name(symbol_of(node)));
  if (found == names.end())
    fail(Code::kInternal, "[dimension] nothing tells '{}'", node.attrs.s("symbol"));
  return values[found - names.begin()];
}

void infer_concrete(const Graph& graph, const std::vector<Shape>& feeds,
                    std::unordered_map<const Value*, ValueType>& types,
                    const Dimensions& dimensions, const std::function<void(const Node&)>& settle) {
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    ValueType type = graph.inputs()[i]->type;
    if (type.container == Container::kTensor) {
      type.ranked = true;
      type.shape = to_dims(feeds[i]);
    }
    types[graph.inputs()[i]] = std::move(type);
  }
  auto type_of = [&](const Value* value) -> const ValueType* {
    if (!value) return nullptr;
    return value->is_constant() ? &value->type : &types.at(value);
  };
  for (const auto& node : graph.nodes()) {
    if (node->is("dimension")) {
      types[node->output()] = {DType::kI64, true, {}, Dims{dimensions.at(*node)}};
      continue;
    }
    std::vector<const ValueType*> inputs;
    for (const Value* value : node->inputs) inputs.push_back(type_of(value));
    std::vector<ValueType> outputs =
        InferContext::run(*node->op, node->attrs, inputs, node->outputs.size(), node->label());
    const bool open = !std::ranges::all_of(outputs, &ValueType::static_shape);
    for (size_t i = 0; i < outputs.size(); ++i) types[node->outputs[i]] = std::move(outputs[i]);
    if (open && settle) settle(*node);
  }
}

namespace {

bool holds_numbers_only(const Graph& graph) {
  const auto values = graph.values();
  return std::ranges::all_of(values, [](const Value* value) {
    return value->type.container == Container::kTensor && value->dtype() != DType::kString;
  });
}

// Whether elements of feeds, and not their shapes alone, tell a value. What a branch or a random
// number tells counts as data.
bool depends_on_data(const Value* value) {
  std::vector<const Value*> open{value};
  std::unordered_set<const Value*> seen{nullptr};
  while (!open.empty()) {
    const Value* next = open.back();
    open.pop_back();
    if (!seen.insert(next).second || next->is_constant()) continue;
    const Node* node = next->producer;
    if (!node || node->op->is(kImpure) || node->op->is(kStructural)) return true;
    if (!node->op->is(kShapeOnly))
      open.insert(open.end(), node->inputs.begin(), node->inputs.end());
  }
  return false;
}

}  // namespace

bool fits_a_plan(const Graph& graph) {
  return holds_numbers_only(graph) && std::ranges::all_of(graph.nodes(), [](const auto& node) {
           return !node->op->is(kStructural) || node->is("dimension");
         });
}

bool branches_follow_shapes(const Graph& graph) {
  return holds_numbers_only(graph) && std::ranges::all_of(graph.nodes(), [](const auto& node) {
           return !node->op->is(kStructural) ||
                  (node->is("if_else") && !depends_on_data(node->input(0)));
         });
}

// Exporters write branches on ranks and extents where a framework looks at them (squeeze, a tensor
// with or without a batch). With the shapes of the feeds the passes choose and inline them.
std::shared_ptr<const Graph> Executable::without_branches(const std::vector<Shape>& feeds) {
  constexpr int kMostTimes = 8;  // each has weights of its own where passes change them
  if (specialised_ >= kMostTimes) return nullptr;
  ++specialised_;
  std::shared_ptr<Graph> graph = graph_->clone();
  for (size_t i = 0; i < feeds.size(); ++i) {
    graph->inputs()[i]->type.ranked = true;
    graph->inputs()[i]->type.shape = to_dims(feeds[i]);
  }
  try {
    graph->infer_again();
    PassContext context = pass_context();
    run_passes(*graph, context);
  } catch (const Error&) {
    return nullptr;  // the run says what is wrong
  }
  return fits_a_plan(*graph) ? graph : nullptr;
}

bool Executable::names_disagree(const std::vector<Shape>& feeds) const {
  Extents extents(symbol_names_.size(), -1);
  for (size_t i = 0; i < feeds.size(); ++i)
    for (size_t d = 0; d < symbols_[i].size(); ++d) {
      if (symbols_[i][d] < 0) continue;
      int64_t& extent = extents[symbols_[i][d]];
      if (extent >= 0 && extent != feeds[i][d]) return true;
      extent = feeds[i][d];
    }
  return false;
}

// Passes and inference take extents of one name for equal, so none of what they found may stay.
std::shared_ptr<const Graph> Executable::told_apart() {
  if (told_apart_) return told_apart_;
  std::shared_ptr<Graph> graph = written_->clone();
  for (Value* input : graph->inputs())
    for (size_t d = 0; d < input->type.shape.size(); ++d)
      if (!input->type.shape[d].known())
        input->type.shape[d] = Dim::symbol(fmt::format("{}.{}", input->name, d));
  graph->infer_again();
  PassContext context = pass_context();
  context.weight_bits = options_.weight_bits;
  run_passes(*graph, context);
  return told_apart_ = std::move(graph);
}

// Symbols of the inputs' shapes get numbers, so that feeds are checked without looking at names;
// behind them come those that only nodes know.
void Executable::number_symbols(const std::vector<Dim>& of_nodes) {
  std::unordered_map<std::string, int> numbers;
  const auto number_of = [&](const Dim& dim) {
    const auto [it, fresh] = numbers.emplace(dim.str(), static_cast<int>(numbers.size()));
    if (fresh) {
      limits_.push_back(dim.limit());
      symbol_names_.push_back(symbol_name(dim));
    }
    return it->second;
  };
  for (const Value* input : graph_->inputs()) {
    SmallVector<int, 6>& symbols = symbols_.emplace_back();
    for (const Dim& dim : input->type.shape) symbols.push_back(dim.known() ? -1 : number_of(dim));
  }
  for (const Dim& dim : of_nodes) number_of(dim);
  // What passes have left must be known at each run.
  for (const auto& node : graph_->nodes()) {
    if (!node->is("dimension")) continue;
    const std::string name = symbol_name(symbol_of(*node));
    if (std::find(dimension_names_.begin(), dimension_names_.end(), name) == dimension_names_.end())
      dimension_names_.push_back(name);
  }
}

Bindings Executable::bind(const std::vector<std::pair<std::string, int64_t>>& values,
                          Bindings bindings) const {
  bindings.resize(symbol_names_.size(), -1);
  for (const auto& [name, value] : values) {
    require(value >= 0, "[bind] dimension '{}' cannot be {}", name, value);
    bool found = false;
    for (size_t i = 0; i < symbol_names_.size(); ++i) {
      if (symbol_names_[i] != name) continue;
      found = true;
      require(value <= limits_[i], "[bind] dimension '{}' is {}, but at most {} is allowed", name,
              value, limits_[i]);
      bindings[i] = value;
    }
    if (!found)
      fail(Code::kNotFound, "[bind] the graph has no dimension '{}'{}{}", name,
           symbol_names_.empty() ? "" : "; it has ", fmt::join(symbol_names_, ", "));
  }
  return bindings;
}

// `extents`: of the symbols, as far as feeds and bindings tell them.
std::vector<int64_t> Executable::dimensions_of(const Extents& extents) const {
  std::vector<int64_t> values;
  for (const std::string& name : dimension_names_) {
    int64_t value = -1;
    for (size_t i = 0; i < symbol_names_.size() && value < 0; ++i)
      if (symbol_names_[i] == name) value = extents[i];
    require(value >= 0, "[run] nothing tells dimension '{}': no feed has it, so it must be bound",
            name);
    values.push_back(value);
  }
  return values;
}

// The extents that are known before any feed is looked at.
Executable::Extents Executable::bound_extents(const Bindings& bindings) const {
  Extents extents(limits_.size(), -1);
  std::copy(bindings.begin(), bindings.end(), extents.begin());
  return extents;
}

STRUCTURAL(dimension) { return {call.scalar(DType::kI64, call.state.dimensions.at(call.node))}; }

}  // namespace anymps
