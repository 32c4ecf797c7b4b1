// SPDX-License-Identifier: Apache-2.0
// A recurrent layer that is written as a loop takes slice after slice of a sequence and multiplies
// each with the same weights. The products do not depend on the state, so they are made before the
// loop, for all slices at once:
//   loop { gather(x, i) * w + b }  ->  p = x * w + b; loop { gather(p, i) }
// A loop that ends early has computed more than it needed, which a product of many rows is cheap
// enough for; so that it cannot be much more, i has to be the loop's counter and x not a constant.
#include <unordered_map>
#include <unordered_set>

#include "passes/loops.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

class Hoister {
 public:
  Hoister(Graph& graph, Node& node, const Carried& where)
      : graph_(graph), node_(node), where_(where), body_(node.attrs.graph("body")->clone()) {
    shift_ = where.node_input - where.body_input;
    captures_ = where.body_input + where.count(node);
  }

  bool run() {
    for (Node* slice : body_->node_list())
      if (slice->is("gather") && is_slice(*slice))
        for (Node* user : std::vector<Node*>(slice->output()->users)) hoist(*slice, *user);
    if (added_.empty()) return false;
    body_->insert_before(nullptr);
    body_->erase_dead();
    std::vector<Value*> inputs = node_.inputs;
    inputs.insert(inputs.end(), added_.begin(), added_.end());
    NamedAttrs attrs = node_.attrs.named();
    for (NamedAttr& attr : attrs)
      if (attr.name == "body")
        attr = {attr.name, AttrValue(std::shared_ptr<Graph>(std::move(body_)))};
    const Node* made =
        graph_.add_node(*node_.op, std::move(inputs), attrs, node_.name, node_.outputs.size());
    for (size_t i = 0; i < node_.outputs.size(); ++i)
      graph_.replace_uses(node_.outputs[i], made->outputs[i]);
    graph_.erase(&node_);  // even if it has effects: the new one has them now
    return true;
  }

 private:
  // What a body's value is outside; null: it is not a capture.
  Value* outside(const Value* value) const {
    const size_t number = input_number(*body_, value);
    if (number == kNoInput || number < captures_) return nullptr;
    return node_.input(number + shift_);
  }

  bool is_counter(const Value* value) const {
    value = origin(value);
    while (value->producer && value->producer->is("cast"))
      value = origin(value->producer->input(0));
    const size_t number = input_number(*body_, value);
    if (number == 0) return true;
    if (number < where_.body_input || number >= captures_) return false;
    const Node* next =
        made_by(origin(body_->outputs()[number - where_.body_input + where_.body_output]), "add");
    return next && either_order(*next, [&](const Value* a, const Value* b) {
             const Value* given = outside(b);
             return origin(a) == value && scalar_of(given ? given : b) == 1.0;
           });
  }

  bool is_slice(const Node& gather) const {
    const Value* x = outside(gather.input(0));
    return x && !x->is_constant() && rank_of(x) >= 3 && contains(kFloat, x->dtype()) &&
           rank_of(gather.input(0)) == rank_of(x) && rank_of(gather.input(1)) == 0 &&
           gather.attrs.i("axis") == 0 && gather.attrs.i("batch_dims") == 0 &&
           is_counter(gather.input(1));
  }

  // Does a value follow from constants? Each is looked at once: a value may be used along very many
  // paths, and those may be long.
  bool is_fixed(const Value* value) {
    std::vector<const Value*> todo = {value};
    while (!todo.empty()) {
      const Value* next = todo.back();
      if (fixed_.contains(next)) {
        todo.pop_back();
        continue;
      }
      const Value* given = outside(next);
      const Node* maker = next->producer;
      const bool computed = !next->is_constant() && !given && maker &&
                            !maker->op->is(kStructural) && !maker->op->is(kImpure);
      const size_t before = todo.size();
      bool fixed = computed || next->is_constant() || (given && given->is_constant());
      for (size_t i = 0; computed && fixed && i < maker->inputs.size(); ++i) {
        const Value* input = maker->inputs[i];
        const auto known = input ? fixed_.find(input) : fixed_.end();
        if (input && known == fixed_.end())
          todo.push_back(input);
        else if (input)
          fixed = known->second;
      }
      if (fixed && todo.size() > before) continue;  // when those are known
      todo.resize(before - 1);
      fixed_[next] = fixed;
      if (fixed) order_.push_back(next);
    }
    return fixed_.at(value);
  }

  // The same value outside; it will be folded there. What it is made of comes before it in order_.
  Value* copy_fixed(const Value* value) {
    std::unordered_set<const Value*> needed = {value};
    for (size_t i = order_.size(); i-- > 0;)
      if (needed.contains(order_[i]) && order_[i]->producer && !outside(order_[i]))
        needed.insert(order_[i]->producer->inputs.begin(), order_[i]->producer->inputs.end());
    for (const Value* next : order_)
      if (needed.contains(next) && !copies_.contains(next)) copy_one(next);
    return copies_.at(value);
  }

  void copy_one(const Value* value) {
    if (value->is_constant()) {
      copies_[value] = graph_.constant(value->constant, value->name);
    } else if (Value* given = outside(value)) {
      copies_[value] = given;
    } else {
      const Node& maker = *value->producer;
      std::vector<Value*> inputs;
      for (const Value* input : maker.inputs) inputs.push_back(input ? copies_.at(input) : nullptr);
      const Node* copy = graph_.add_node(*maker.op, std::move(inputs), maker.attrs.named(),
                                         maker.name, maker.outputs.size());
      for (size_t i = 0; i < copy->outputs.size(); ++i)
        copies_[maker.outputs[i]] = copy->outputs[i];
    }
  }

  bool is_product(const Node& slice, const Node& node) {
    if (!node.is("matmul") || node.input(0) != slice.output() || node.inputs.size() != 2 ||
        node.attrs.b("transpose_a") || node.attrs.b("transpose_b"))
      return false;
    const Value *x = outside(slice.input(0)), *w = node.input(1);
    return w->type.ranked && w->type.static_shape() && w->shape().size() == 2 && is_fixed(w) &&
           x->shape().back().known() && x->shape().back() == w->shape()[0];
  }

  void hoist(const Node& slice, Node& product) {
    if (!is_product(slice, product)) return;
    Value* all = graph_.add("matmul", {outside(slice.input(0)), copy_fixed(product.input(1))},
                            product.attrs.named(), product.name);
    Value* result = product.output();
    const Dim columns = product.input(1)->shape()[1];
    if (single_use(*body_, result) && result->users[0]->is("add")) {
      const Node& sum = *result->users[0];
      Value* bias = sum.input(sum.input(0) == result ? 1 : 0);
      if (bias->type.ranked && bias->shape().size() == 1 && bias->shape()[0] == columns &&
          is_fixed(bias)) {
        all = graph_.add("add", {all, copy_fixed(bias)}, {}, sum.name);
        result = sum.output();
      }
    }
    ValueType type = slice.input(0)->type;
    type.shape.back() = columns;
    std::string name = product.name + ".all";
    while (body_->find_value(name)) name += "_";
    body_->insert_before(result->producer);
    Value* part = body_->add("gather", {body_->input(name, std::move(type)), slice.input(1)},
                             slice.attrs.named(), product.name + ".slice");
    body_->replace_uses(result, part);
    added_.push_back(all);
  }

  Graph& graph_;
  Node& node_;
  const Carried& where_;
  std::unique_ptr<Graph> body_;
  size_t shift_ = 0;     // from a number in the inputs of the body to that in those of the node
  size_t captures_ = 0;  // the first of them in the body
  std::unordered_map<const Value*, bool> fixed_;
  std::vector<const Value*> order_;  // those that are fixed, producers first
  std::unordered_map<const Value*, Value*> copies_;
  std::vector<Value*> added_;
};

}  // namespace

PASS(hoist_projections, 115, "products of a sequence's slices are made before the loop, at once") {
  if (!context.evaluate) return 0;  // what is copied out of the body must fold
  Rewriter rewriter(graph);
  return rewriter.each([&](Node& node) {
    const Carried* where = node.is("loop") || node.is("for_loop") ? carried_of(node) : nullptr;
    return where && Hoister(graph, node, *where).run();
  });
}

}  // namespace anymps
