// SPDX-License-Identifier: Apache-2.0
// Finds scaled dot-product attention:
//   matmul(softmax(matmul(q, transpose(k)) * scale + mask), v)  ->  sdpa(q, k, v, mask) {scale}
// The scale may be a mul or div of the scores, of q or of k, or the matmul's alpha. Masks may be
// several sums, or a choice between the score and a number that no weight survives. Keys that come
// as [.., D, T] get a transpose, which is a view and merges with the one that made them so; so do
// scores that are the transpose of  matmul(k, transpose(q)),  as an einsum is exported. In between,
// batch and heads may be merged into one axis.
#include <algorithm>
#include <limits>

#include "passes/fuse.h"

namespace anymps {

namespace {

struct Pattern {
  Value *q = nullptr, *k = nullptr, *v = nullptr;
  const Value* tested = nullptr;  // scores that a test for rows of -infinity reads too
  std::vector<Value*> masks;      // added to the scores
  // where(condition, score, number), or with the two exchanged
  struct Choice {
    Value* condition;
    double number;
    bool keeps;  // the score where the condition is true
  };
  std::vector<Choice> choices;
  double scale = 1;
  bool q_transposed = true;   // [.., S, D], as sdpa wants it
  bool k_transposed = false;  // [.., T, D], likewise
  bool v_transposed = false;
  bool merged = false;  // q, k and v have fewer axes than the scores that are masked
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

// A reshape that leaves the last two axes as they are.
bool keeps_matrices(const Node& node) {
  if (!node.is("reshape") && !node.is("squeeze") && !node.is("unsqueeze")) return false;
  const Value *from = node.input(0), *to = node.output();
  if (rank_of(from) < 2 || rank_of(to) < 2) return false;
  const Dims &a = from->shape(), &b = to->shape();
  return a[a.size() - 2] == b[b.size() - 2] && a.back() == b.back();
}

bool swaps_last(const Node& node) {
  if (!node.is("transpose") || rank_of(node.input(0)) < 2) return false;
  std::vector<int64_t> perm = perm_of(node);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return std::is_sorted(perm.begin(), perm.end());
}

bool read_once(const Graph& graph, const Value* value, const Pattern& found) {
  if (value != found.tested) return single_use(graph, value);
  return value->users.size() == 2 && !graph.is_output(value);
}

// The product of q and k, scaled, perhaps transposed and with other leading axes.
bool match_product(const Graph& graph, Value* value, Pattern& found) {
  found.scale = 1;
  found.merged = false;
  bool swapped = false;
  for (;;) {
    if (!read_once(graph, value, found)) return false;
    peel_scale(graph, value, found.scale);
    Node* node = value->producer;
    if (!node || !read_once(graph, value, found)) return false;
    if (swaps_last(*node)) {
      swapped = !swapped;
    } else if (keeps_matrices(*node)) {
      found.merged = true;
    } else {
      break;
    }
    value = node->input(0);
  }
  Node* matmul = made_by(value, "matmul");
  if (!matmul || !plain_matmul(*matmul)) return false;
  found.scale *= matmul->attrs.f("alpha");
  const bool rows = matmul->attrs.b("transpose_b");
  found.q = matmul->input(swapped ? 1 : 0);
  found.k = matmul->input(swapped ? 0 : 1);
  found.q_transposed = !swapped || rows;
  found.k_transposed = swapped || rows;
  return rank_of(found.q) >= 2 && rank_of(found.k) >= 2;
}

// What no weight survives: added to a score it leaves nothing of it.
bool rules_out(double number, DType dtype, DTypeSet rounded) {
  StoredNumbers stored(dtype, rounded & bit(DType::kF16));
  stored.add(number);
  return number <= (stored.dtype() == DType::kF16 ? -6e4 : -1e9);
}

// From the scores, as the softmax reads them, back to q and k.
bool match_scores(const Graph& graph, Value* scores, Pattern& found, DTypeSet rounded,
                  int depth = 0) {
  constexpr int kMostMasks = 4;
  if (match_product(graph, scores, found)) return true;
  if (depth == kMostMasks || !read_once(graph, scores, found)) return false;
  if (Node* sum = made_by(scores, "add"))
    return either_order(*sum, [&](Value* value, Value* mask) {
      if (!same_shape(value, scores) || rank_of(mask) < 0) return false;
      if (!match_scores(graph, value, found, rounded, depth + 1)) return false;
      found.masks.push_back(mask);
      return true;
    });
  Node* choice = made_by(scores, "where");
  for (size_t kept = 1; choice && kept <= 2; ++kept) {
    Value* value = choice->input(kept);
    const auto number = scalar_of(choice->input(3 - kept));
    if (!number || !rules_out(*number, scores->dtype(), rounded) || !same_shape(value, scores) ||
        rank_of(choice->input(0)) < 0)
      continue;
    if (!match_scores(graph, value, found, rounded, depth + 1)) continue;
    // A number that was a half's is not so large that it leaves nothing of a score of f32.
    const bool small = scores->dtype() == DType::kF32 && *number > -1e9;
    const double none = small ? -1e30 : *number;
    found.choices.push_back({choice->input(0), none, kept == 1});
    return true;
  }
  return false;
}

// All axes but the last two are the same, so that nothing is broadcast; D agrees.
bool shapes_fit(const Pattern& p) {
  const int64_t rank = rank_of(p.q);
  if ((rank != 3 && rank != 4) || rank_of(p.k) != rank || rank_of(p.v) != rank) return false;
  const size_t lead = rank - 2;
  for (size_t i = 0; i < lead; ++i)
    if (!(p.q->shape()[i] == p.k->shape()[i]) || !(p.q->shape()[i] == p.v->shape()[i]))
      return false;
  const Dim& width = p.q->shape()[p.q_transposed ? lead + 1 : lead];
  const Dim& depth = p.k->shape()[p.k_transposed ? lead + 1 : lead];
  const Dim& keys = p.k->shape()[p.k_transposed ? lead : lead + 1];
  const Dim& values = p.v->shape()[p.v_transposed ? lead + 1 : lead];
  return width == depth && keys == values;
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

// All masks as one that is added; null: there is none.
Value* joint_mask(Graph& graph, const Pattern& found, DType dtype, const std::string& name) {
  std::vector<Value*> masks = found.masks;
  for (const Pattern::Choice& choice : found.choices) {
    Value *none = graph.scalar(dtype, 0), *all = graph.scalar(dtype, choice.number);
    masks.push_back(
        graph.add("where", {choice.condition, choice.keeps ? none : all, choice.keeps ? all : none},
                  {}, name + ".mask"));
  }
  Value* mask = nullptr;
  for (Value* next : masks)
    mask = mask ? graph.add("add", {mask, next}, {}, name + ".masks") : next;
  return mask;
}

// A matrix of each head, rows by columns, with the leading axes of `like`.
Dims with_leading(const Dims& like, const Dim& rows, const Dim& columns) {
  Dims shape(like.begin(), like.end() - 2);
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

bool can_reshape(const Dims& from, const Dims& to) {
  return same_shape(from, to) || reshape_attr(from, to);
}

bool reduces_last(const Node& node) {
  const int64_t rank = rank_of(node.input(0));
  const std::vector<int64_t> axes = node.attrs.ints("axes");
  return !node.input(1) && node.attrs.b("keep_dims") && axes.size() == 1 &&
         (axes[0] == -1 || axes[0] == rank - 1);
}

// Whether a condition is the same for all of a row: true (`all`), or false, where every score of
// the row is -infinity. Frameworks without a reduction of truths take the mean of 0 and 1.
bool tells_empty_rows(const Graph& graph, Value* condition, const Value* scores, bool all) {
  bool negated = false;  // what is told of the value at hand
  Node* reduction = nullptr;
  for (;; condition = condition->producer->input(0)) {
    Node* node = condition->producer;
    if (!node || !single_use(graph, condition)) return false;
    if (node->is("logical_not")) {
      negated = !negated;
    } else if (made_by(condition, {"not_equal", "equal"}) && !reduction &&
               scalar_of(node->input(1)) == 0.0) {
      negated = negated != node->is("equal");
    } else if (made_by(condition, {"reduce_mean", "reduce_max", "reduce_or", "reduce_and"})) {
      if (reduction || rank_of(node->input(0)) != rank_of(scores)) return false;
      reduction = node;
      // All are, or not one is not.
      if (negated == (node->is("reduce_and") == all)) return false;
      negated = false;
    } else if (made_by(condition, {"equal", "not_equal"}) && reduction) {
      negated = negated != node->is("not_equal");
      return negated != reduction->is("reduce_and") && node->input(0) == scores &&
             scalar_of(node->input(1)) == -std::numeric_limits<double>::infinity() &&
             reduces_last(*reduction);
    } else if (!node->is("cast") ||
               (condition->dtype() != DType::kBool && node->input(0)->dtype() != DType::kBool)) {
      return false;
    }
  }
}

// The softmax of the scores, perhaps with 0 in place of NaN (a query that keeps no key gives 0 in
// sdpa, too), perhaps with other leading axes.
Node* softmax_of(const Graph& graph, Value* weights, Pattern& found) {
  if (!single_use(graph, weights)) return nullptr;
  if (Node* node = weights->producer; node && keeps_matrices(*node)) {
    weights = node->input(0);
    if (!single_use(graph, weights)) return nullptr;
  }
  Node* choice = made_by(weights, "where");
  for (const size_t kept : {2u, 1u}) {
    Node* softmax = choice ? made_by(choice->input(kept), "softmax") : nullptr;
    if (!softmax || scalar_of(choice->input(3 - kept)) != 0.0 ||
        !single_use(graph, choice->input(kept)) ||
        !tells_empty_rows(graph, choice->input(0), softmax->input(0), kept == 2))
      continue;
    found.tested = softmax->input(0);
    weights = choice->input(kept);
    choice = nullptr;
  }
  if (choice) {
    Node* test = made_by(choice->input(0), "is_nan");
    weights = choice->input(2);
    if (!test || test->input(0) != weights || scalar_of(choice->input(1)) != 0.0 ||
        weights->users.size() != 2 || graph.is_output(weights))
      return nullptr;
  }
  Node* softmax = made_by(weights, "softmax");
  if (!softmax || rank_of(weights) < 2) return nullptr;
  const int64_t axis = softmax->attrs.i("axis");
  return axis == -1 || axis == rank_of(weights) - 1 ? softmax : nullptr;
}

Value* attention(Graph& graph, Node& node, DTypeSet rounded) {
  if (!node.is("matmul") || !plain_matmul(node) || node.attrs.f("alpha") != 1) return nullptr;
  if (!is_float(node.output()->dtype())) return nullptr;
  Pattern found;
  Node* softmax = softmax_of(graph, node.input(0), found);
  if (!softmax) return nullptr;
  found.v = node.input(1);
  found.v_transposed = node.attrs.b("transpose_b");
  Value* scores = softmax->input(0);
  if (!match_scores(graph, scores, found, rounded)) return nullptr;
  peel_scale(graph, found.q, found.scale);
  peel_scale(graph, found.k, found.scale);
  if (!shapes_fit(found)) return nullptr;
  if (!(found.scale > 0)) return nullptr;  // 0 would mean the default
  // What is masked needs the axes that the mask is about.
  const bool spread = found.merged && (!found.masks.empty() || !found.choices.empty());
  const Dims &all = scores->shape(), &q = found.q->shape(), &k = found.k->shape(),
             &v = found.v->shape();
  const size_t row = q.size() - 2;
  const Dims heads[] = {
      with_leading(q, q[found.q_transposed ? row : row + 1], q[found.q_transposed ? row + 1 : row]),
      with_leading(k, k[found.k_transposed ? row : row + 1], k[found.k_transposed ? row + 1 : row]),
      with_leading(v, v[found.v_transposed ? row + 1 : row],
                   v[found.v_transposed ? row : row + 1])};
  const Dims y_heads = with_leading(all, heads[0][row], heads[2][row + 1]);
  if (spread) {
    if (all.size() != 4 || !can_reshape(y_heads, node.output()->shape())) return nullptr;
    for (const Dims& head : heads)
      if (!can_reshape(head, with_leading(all, head[row], head[row + 1]))) return nullptr;
  }
  if (!found.q_transposed) found.q = swap_last(graph, found.q);
  if (!found.k_transposed) found.k = swap_last(graph, found.k);
  if (found.v_transposed) found.v = swap_last(graph, found.v);
  const bool one_head = !spread && rank_of(found.q) == 3;
  size_t i = 0;
  for (Value** value : {&found.q, &found.k, &found.v}) {
    const Dims& head = heads[i++];
    if (one_head)
      *value = graph.add("unsqueeze", {*value}, {{"axes", std::vector<int64_t>{0}}});
    else if (spread)
      *value = reshaped(graph, *value, with_leading(all, head[row], head[row + 1]),
                        (*value)->name + ".heads");
  }
  Value* mask = joint_mask(graph, found, scores->dtype(), node.name);
  const bool apart = one_head || spread;
  Value* y = graph
                 .add_node(get_op("sdpa"), {found.q, found.k, found.v, mask},
                           {{"scale", found.scale}}, apart ? node.name + ".sdpa" : node.name, 1)
                 ->output();
  if (one_head) return graph.add("squeeze", {y}, {{"axes", std::vector<int64_t>{0}}}, node.name);
  return spread ? reshaped(graph, y, node.output()->shape(), node.name) : y;
}

}  // namespace

PASS(fuse_attention, 400, "matmul, softmax, matmul -> sdpa") {
  return fuse_each(graph, context, [&](Graph& graph, Node& node) {
    return attention(graph, node, context.rounded);
  });
}

}  // namespace anymps
