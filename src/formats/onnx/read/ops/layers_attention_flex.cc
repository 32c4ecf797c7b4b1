// SPDX-License-Identifier: Apache-2.0
// FlexAttention: attention with graphs of its own that change the scores and the probabilities.
#include <cmath>

#include "formats/onnx/read/importer.h"
#include "formats/onnx/read/ops/layers_heads.h"

namespace anymps::onnx {

Values Importer::inline_body(const Graph& body, const Values& inputs, Scope& scope) {
  require(++depth_ <= 64, "graphs are nested more than 64 deep");
  require(inputs.size() == body.inputs.size(), "graph \"{}\" takes {} inputs, {} are given",
          body.name, body.inputs.size(), inputs.size());
  Values outputs = run_graph(body, inputs, scope);
  --depth_;
  return outputs;
}

ONNX_READ_INSIDE(kPreview, FlexAttention, convert_flex_attention);

Values Importer::convert_flex_attention(const Node& node, const Values& inputs, Scope& scope) {
  std::string name(node.name);
  if (name.empty() && !node.outputs.empty()) name = node.outputs[0];
  Call c(scope.target->graph, node, opset(scope, node.domain), inputs, name);
  Value *q = c.in(0), *k = c.in(1), *v = c.in(2);
  c.check(c.rank(q) == 4 && c.rank(k) == 4 && c.rank(v) == 4, "Q, K and V must have rank 4");
  const DType type = q->dtype();
  DType wide = type == DType::kF64 ? type : DType::kF32;
  if (c.has("softmax_precision")) wide = c.dtype("softmax_precision");
  const Dim &heads = q->shape()[1], &shared = k->shape()[1], &depth = q->shape()[3];
  if (!heads.known() || !shared.known() || !depth.known())
    c.unsupported("the number of heads and their width must be known");
  c.check(shared.value() > 0 && heads.value() % shared.value() == 0,
          "{} query heads do not share {} heads evenly", heads.value(), shared.value());
  const int64_t times = heads.value() / shared.value();
  const double scale = c.f("scale", 1 / std::sqrt(static_cast<double>(depth.value())));
  c.ignore({"score_mod", "prob_mod"});
  const auto changed = [&](Value* x, const char* graph) {
    const Attribute* attribute = node.find(graph);
    if (!attribute) return x;
    require(attribute->type == Attribute::Type::kGraph, "attribute '{}' must be a graph", graph);
    const Values y = inline_body(attribute->graphs[0], {x}, scope);
    require(y.size() == 1 && y[0]->dtype() == x->dtype(), "{} must give one tensor of {}", graph,
            anymps::name(x->dtype()));
    return y[0];
  };
  const DType product = type == DType::kF64 ? type : DType::kF32;
  Value* scores = c.add("matmul", {c.cast(q, product), c.cast(repeat_heads(c, k, times), product)},
                        {{"transpose_b", true}, {"alpha", scale}});
  scores = changed(c.cast(scores, wide), "score_mod");
  Value* p = changed(c.add("softmax", {scores}, {{"axis", -1}}), "prob_mod");
  Value* y = c.add("matmul", {p, c.cast(repeat_heads(c, v, times), wide)});
  c.check_all_read();
  return {c.cast(y, v->dtype())};
}

}  // namespace anymps::onnx
