// SPDX-License-Identifier: Apache-2.0
// Finds scaled dot-product attention:
//   matmul(softmax(matmul(q, transpose(k)) * scale + mask), v)  ->  sdpa(q, k, v, mask) {scale}
// The scale may be a mul or div of the scores, of q or of k, or the matmul's alpha. Keys that come
// as [.., D, T] get a transpose, which is a view and merges with the one that made them so.
#include <algorithm>

#include "passes/fuse.h"

namespace anymps {

namespace {

struct Pattern {
  Value *q = nullptr, *k = nullptr, *v = nullptr, *mask = nullptr;
  double scale = 1;
  bool k_transposed = false;  // [.., T, D], as sdpa wants it
  bool v_transposed = false;
};

bool plain_matmul(const Node& node) {
  return !node.input(2) && !node.input(3) && node.attrs.s("activation") == "none" &&
         !node.attrs.b("transpose_a");
}

// Takes multiplications with numbers off a value.
void peel_scale(const Graph& graph, Value*& value, double& scale) {
  while (Node* node = made_by(value, {"mul", "div"})) {
    auto affine = as_affine(*node);
    if (!affine || !single_use(graph, value)) return;
    scale *= affine->scale;
    value = affine->source;
  }
}

// From the scores, as the softmax reads them, back to q and k.
bool match_scores(const Graph& graph, Value* scores, Pattern& found) {
  Value* product = scores;
  auto match_product = [&](Value* value) {
    found.scale = 1;
    if (!single_use(graph, value)) return false;
    peel_scale(graph, value, found.scale);
    Node* matmul = made_by(value, "matmul");
    if (!matmul || !single_use(graph, value) || !plain_matmul(*matmul)) return false;
    found.scale *= matmul->attrs.f("alpha");
    found.q = matmul->input(0);
    found.k = matmul->input(1);
    found.k_transposed = matmul->attrs.b("transpose_b");
    product = value;
    return true;
  };
  if (Node* sum = made_by(scores, "add"); sum && single_use(graph, scores)) {
    const bool masked = either_order(*sum, [&](Value* value, Value* mask) {
      if (!same_shape(value, scores) || !match_product(value)) return false;
      found.mask = mask;
      return true;
    });
    if (!masked) return false;
  } else if (!match_product(scores)) {
    return false;
  }
  peel_scale(graph, found.q, found.scale);
  peel_scale(graph, found.k, found.scale);
  return same_shape(product, scores);
}

// All axes but the last two are the same, so that nothing is broadcast; D agrees.
bool shapes_fit(const Pattern& p) {
  const int64_t rank = rank_of(p.q);
  if ((rank != 3 && rank != 4) || rank_of(p.k) != rank || rank_of(p.v) != rank) return false;
  const size_t lead = rank - 2;
  for (size_t i = 0; i < lead; ++i)
    if (!(p.q->shape()[i] == p.k->shape()[i]) || !(p.q->shape()[i] == p.v->shape()[i]))
      return false;
  const Dim& depth = p.k->shape()[p.k_transposed ? lead + 1 : lead];
  const Dim& keys = p.k->shape()[p.k_transposed ? lead : lead + 1];
  const Dim& values = p.v->shape()[p.v_transposed ? lead + 1 : lead];
  return p.q->shape()[lead + 1] == depth && keys == values;
}

Value* swap_last(Graph& graph, Value* value) {
  const size_t rank = rank_of(value);
  std::vector<int64_t> perm(rank);
  for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm[rank - 1], perm[rank - 2]);
  if (Node* inner = made_by(value, "transpose")) {
    const std::vector<int64_t> first = perm_of(*inner);
    for (int64_t& axis : perm) axis = first[axis];
    value = inner->input(0);
    if (std::is_sorted(perm.begin(), perm.end())) return value;
  }
  return graph.add("transpose", {value}, {{"perm", perm}}, value->name + ".transposed");
}

Value* attention(Graph& graph, Node& node) {
  if (!node.is("matmul") || !plain_matmul(node) || node.attrs.f("alpha") != 1) return nullptr;
  if (!is_float(node.output()->dtype())) return nullptr;
  Value* weights = node.input(0);
  Node* softmax = made_by(weights, "softmax");
  if (!softmax || !single_use(graph, weights) || !weights->type.ranked) return nullptr;
  const int64_t axis = softmax->attrs.i("axis");
  if (axis != -1 && axis != rank_of(weights) - 1) return nullptr;
  Pattern found;
  found.v = node.input(1);
  found.v_transposed = node.attrs.b("transpose_b");
  if (!match_scores(graph, softmax->input(0), found) || !shapes_fit(found)) return nullptr;
  if (!(found.scale > 0)) return nullptr;  // 0 would mean the default
  if (found.mask && rank_of(found.mask) < 0) return nullptr;
  if (!found.k_transposed) found.k = swap_last(graph, found.k);
  if (found.v_transposed) found.v = swap_last(graph, found.v);
  const bool one_head = rank_of(found.q) == 3;
  if (one_head)
    for (Value** value : {&found.q, &found.k, &found.v})
      *value = graph.add("unsqueeze", {*value}, {{"axes", std::vector<int64_t>{0}}});
  Value* y = graph
                 .add_node(get_op("sdpa"), {found.q, found.k, found.v, found.mask},
                           {{"scale", found.scale}}, one_head ? node.name + ".sdpa" : node.name, 1)
                 ->output();
  return one_head ? graph.add("squeeze", {y}, {{"axes", std::vector<int64_t>{0}}}, node.name) : y;
}

}  // namespace

PASS(fuse_attention, 400, "matmul, softmax, matmul -> sdpa") {
  return fuse_each(graph, context, attention);
}

}  // namespace anymps
