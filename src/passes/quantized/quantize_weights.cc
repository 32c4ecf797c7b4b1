// SPDX-License-Identifier: Apache-2.0
// Large constant matrices are stored in 8 or 4 bits, where the compile options ask for it:
//   act(alpha * matmul(x, w) + bias)  ->  act(alpha * weight_only_matmul(x, w8, scales) + bias)
//   gather(table, i)                  ->  cast(gather(table8, i)) * gather(scales, i)
// Of 8 bits each column of w has a scale, of 4 bits each 32 elements of a column. Tables are of 8
// bits, with a scale for each row: so little is read of them that fewer bits save no time. This is
// the one pass that changes what a graph computes. What follows a product element by element is
// joined by fuse_elementwise.
#include <map>
#include <tuple>

#include "memory/refreshable.h"
#include "passes/epilogue.h"
#include "passes/match.h"
#include "passes/pass.h"
#include "passes/quantized/few_bits.h"

namespace anymps {

namespace {

constexpr int64_t kLeastElements = 1 << 14;  // with fewer a scale for each row is no small part
constexpr int64_t kLeastDepth = 32;
constexpr int64_t kGroup = 32;  // elements of 4 bits that share a scale

class WeightQuantization {
 public:
  WeightQuantization(Graph& graph, int64_t bits) : graph_(graph), bits_(bits) {}

  int run() {
    Rewriter rewriter(graph_);
    return rewriter.each([&](Node& node) {
      Value* made = node.is("matmul")   ? product(node)
                    : node.is("gather") ? picked_rows(node)
                                        : nullptr;
      return made && rewriter.replace(node.output(), made);
    });
  }

 private:
  static bool is_large(const Value* value) {
    if (!value->is_constant() || rank_of(value) != 2 || is_refreshable(*value->constant))
      return false;
    const DType dtype = value->dtype();
    return (dtype == DType::kF32 || is_half(dtype)) &&
           value->constant->desc().count() >= kLeastElements;
  }

  // A matrix may have several users.
  const std::optional<FewBitsMatrix>& stored(const ConstantPtr& matrix, const FewBits& form) {
    const auto [found, is_new] = stored_.try_emplace({matrix->id(), form.bits, form.turns});
    if (is_new) found->second = in_few_bits(*matrix, form);
    return found->second;
  }

  Value* product(const Node& node) {
    Value *x = node.input(0), *w = node.input(1);
    if (!is_large(w) || rank_of(x) < 1 || node.attrs.b("transpose_a")) return nullptr;
    FewBits form;
    form.turns = !node.attrs.b("transpose_b");
    const int64_t depth = w->constant->shape()[form.turns ? 0 : 1];
    if (depth < kLeastDepth || !x->shape().back().is(depth)) return nullptr;
    if (bits_ == 4 && depth % kGroup == 0) form.bits = 4, form.group = kGroup;
    const auto& matrix = stored(w->constant, form);
    if (!matrix) return nullptr;
    Value* y = graph_.add("weight_only_matmul",
                          {x, graph_.constant(matrix->w, w->name + ".few"),
                           graph_.constant(matrix->scales, w->name + ".scales")},
                          {{"bits", form.bits}, {"group", form.group}}, node.name);
    if (node.attrs.f("alpha") != 1)
      y = graph_.add("mul", {y, graph_.scalar(w->dtype(), node.attrs.f("alpha"))});
    for (const size_t summand : {2u, 3u})
      if (node.input(summand)) y = graph_.add("add", {y, node.input(summand)});
    return activation_of(graph_, y, node.attrs, "act_alpha", "act_beta");
  }

  Value* picked_rows(const Node& node) {
    Value *table = node.input(0), *indices = node.input(1);
    const int64_t axis = node.attrs.i("axis");
    if (!is_large(table) || (axis != 0 && axis != -2) || node.attrs.i("batch_dims") != 0 ||
        table->constant->shape()[1] < kLeastDepth || !indices->type.ranked)
      return nullptr;
    const auto& matrix = stored(table->constant, {});
    if (!matrix) return nullptr;
    const ConstantPtr steps = Constant::view(matrix->scales->dtype(), {matrix->w->shape()[0], 1},
                                             matrix->scales->data().get(), matrix->scales);
    const auto pick = [&](const ConstantPtr& from, const char* what) {
      return graph_.add("gather", {graph_.constant(from, table->name + what), indices},
                        {{"axis", 0}});
    };
    Value* wide = graph_.add("cast", {pick(matrix->w, ".few")}, {{"dtype", table->dtype()}});
    return graph_.add("mul", {wide, pick(steps, ".scales")}, {}, node.name);
  }

  Graph& graph_;
  const int64_t bits_;
  std::map<std::tuple<uint64_t, int64_t, bool>, std::optional<FewBitsMatrix>> stored_;
};

}  // namespace

PASS(quantize_weights, 280, "constant matrices in few bits; only if the compile options ask") {
  return context.weight_bits == 0 ? 0 : WeightQuantization(graph, context.weight_bits).run();
}

}  // namespace anymps
