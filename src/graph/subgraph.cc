// SPDX-License-Identifier: Apache-2.0
#include "ops/subgraph.h"

#include <algorithm>
#include <unordered_map>

#include "graph/copy_body.h"

namespace anymps {

static Signature read_signature(const Graph& body) {
  Signature signature;
  for (const Value* value : body.inputs()) {
    signature.names.push_back(value->name);
    signature.inputs.push_back(value->type);
  }
  for (const Value* value : body.outputs()) signature.outputs.push_back(value->type);
  return signature;
}

static const SignatureReader kSignatureReader(read_signature);

std::optional<bool> known_condition(const Value* condition) {
  if (const auto number = scalar_of(condition)) return *number != 0;
  const std::optional<Dims>& content = condition->type.content;
  if (!content || content->size() != 1 || !content->front().known()) return std::nullopt;
  return content->front().value() != 0;
}

bool has_effects(const Node& node) {
  if (node.op->is(kImpure)) return true;
  if (!node.op->is(kStructural)) return false;
  for (const AttrValue& attr : node.attrs.values())
    if (const auto* body = std::get_if<std::shared_ptr<Graph>>(&attr); body && *body)
      if (has_effects(**body)) return true;
  return false;
}

bool has_effects(const Graph& body) {
  return std::any_of(body.nodes().begin(), body.nodes().end(),
                     [](const auto& node) { return has_effects(*node); });
}

std::vector<Value*> copy_body(Graph& graph, const Graph& body, const std::vector<Value*>& inputs) {
  std::unordered_map<const Value*, Value*> twins;
  for (size_t i = 0; i < body.inputs().size(); ++i) twins[body.inputs()[i]] = inputs.at(i);
  for (const Value* value : body.values())
    if (value->is_constant()) twins[value] = graph.constant(value->constant, value->name);
  for (const auto& node : body.nodes()) {
    std::vector<Value*> args;
    for (const Value* value : node->inputs) args.push_back(value ? twins.at(value) : nullptr);
    const Node* copy = graph.add_node(*node->op, std::move(args), node->attrs.named(), node->name,
                                      node->outputs.size());
    for (size_t i = 0; i < copy->outputs.size(); ++i) twins[node->outputs[i]] = copy->outputs[i];
  }
  std::vector<Value*> outputs;
  for (const Value* value : body.outputs()) outputs.push_back(twins.at(value));
  return outputs;
}

}  // namespace anymps
