// SPDX-License-Identifier: Apache-2.0
#include "passes/quantized/quantized_steps.h"

#include "passes/match.h"

namespace anymps {

bool is_byte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }
Value* as_floats(Graph& graph, Value* value) {
  return graph.add("cast", {value}, {{"dtype", DType::kF32}});
}
bool is_vector(const Value* value) {
  return value->type.ranked && value->shape().size() <= 1 && value->dtype() == DType::kF32;
}

std::optional<Quantized> steps_of(Graph& graph, const Node& node, DType elements) {
  Quantized q{node.input(0), node.input(1), node.input(2)};
  if (!q.x->type.ranked) return std::nullopt;
  const auto rank = static_cast<int64_t>(q.x->shape().size());
  q.axis = node.attrs.i("axis") + (node.attrs.i("axis") < 0 ? rank : 0);
  if (q.scale && !is_vector(q.scale)) return std::nullopt;
  q.one = !q.scale || is_scalar(q.scale);
  if (!q.one && node.attrs.i("block_size") > 1) return std::nullopt;
  if (!q.scale) q.scale = graph.scalar(DType::kF32, node.attrs.f("scale"));
  if (!q.zero && node.attrs.f("zero_point") != 0)
    q.zero = graph.scalar(elements, node.attrs.f("zero_point"));
  if (q.zero && (q.zero->dtype() != elements || !q.zero->type.ranked)) return std::nullopt;
  if (q.zero && q.zero->shape().size() > 1) return std::nullopt;
  if (q.zero && !is_scalar(q.zero) && q.one) return std::nullopt;
  return q;
}

std::optional<Quantized> dequantized(Graph& graph, const Value* value) {
  const Node* node = made_by(value, "dequantize");
  if (!node || value->dtype() != DType::kF32 || !is_byte(node->input(0)->dtype()))
    return std::nullopt;
  return steps_of(graph, *node, node->input(0)->dtype());
}

}  // namespace anymps
