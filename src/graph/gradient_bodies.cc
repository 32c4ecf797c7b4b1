// SPDX-License-Identifier: Apache-2.0
// Gradients of nodes that run a graph once: the same node with graphs that compute the gradients.
// They are here because they look into graphs, which src/ops must not.
#include "graph/gradient_walk.h"
#include "ops/gradient.h"

namespace anymps {

namespace {

using Places = std::vector<size_t>;

// A graph of the inputs of `body` and the gradients of some of its outputs that gives those of the
// wanted inputs.
std::shared_ptr<Graph> gradient_body(const Graph& body, const Places& outputs,
                                     const Places& wanted) {
  std::shared_ptr<Graph> graph = body.clone();
  std::vector<Value*> xs, results;
  for (const size_t i : wanted) xs.push_back(graph->inputs().at(i));
  GradientSeeds seeds;
  for (const size_t i : outputs) {
    Value* y = graph->outputs().at(i);
    std::string name = fmt::format("dy{}", i);
    while (graph->find_value(name)) name += "_";
    seeds.emplace_back(y, graph->input(name, y->type));
  }
  const std::vector<Value*> dxs = pull_back(*graph, seeds, xs);
  for (size_t k = 0; k < dxs.size(); ++k)
    results.push_back(dxs[k] ? dxs[k] : filled_like(*graph, xs[k], 0));
  graph->set_outputs(results);
  return graph;
}

// Body inputs are the node's from `first` on.
void through_bodies(GradientContext& ctx, size_t first, const std::vector<const char*>& bodies) {
  std::vector<Term> inputs;
  Places outputs, wanted;
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    inputs.push_back(ctx.x(i));
    if (ctx.wants(i)) wanted.push_back(i - first);
  }
  for (size_t i = 0; i < ctx.output_count(); ++i) {
    if (!ctx.dy(i)) continue;
    outputs.push_back(i);
    inputs.push_back(ctx.dy(i));
  }
  NamedAttrs attrs;
  for (const char* body : bodies)
    attrs.emplace_back(body, AttrValue(gradient_body(*ctx.attrs().graph(body), outputs, wanted)));
  const std::vector<Term> dxs = ctx.add_all(ctx.op().name.c_str(), inputs, attrs, wanted.size());
  for (size_t k = 0; k < wanted.size(); ++k) ctx.set(wanted[k] + first, dxs[k]);
}

}  // namespace

COMPLEX_GRADIENT(if_else) { through_bodies(ctx, 1, {"then_branch", "else_branch"}); }
COMPLEX_GRADIENT(call) { through_bodies(ctx, 0, {"callee"}); }

}  // namespace anymps
