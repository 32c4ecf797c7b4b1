// SPDX-License-Identifier: Apache-2.0
// Gradients of loops. The loop runs once more and keeps, as scan outputs, what it carries into each
// round. A scan then goes through the rounds from the last to the first; its body is the gradient
// of the loop's body, its states are the gradients of what is carried, and sums for the captures.
// The other loops are written as `loop`, in gradient_other_loops.cc.
#include <algorithm>

#include "graph/copy_body.h"
#include "graph/gradient_walk.h"
#include "ops/gradient.h"
#include "ops/subgraph.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;
using Places = std::vector<size_t>;
using GraphPtr = std::shared_ptr<Graph>;

bool contains(const Places& places, size_t place) {
  return std::find(places.begin(), places.end(), place) != places.end();
}

bool same_shape(const ValueType& a, const ValueType& b) {
  return a.ranked && b.ranked && a.shape == b.shape;
}

// Where a round of `loop` or `scan` has its parts. Inputs of the node and of its body stand at the
// same places; the node's outputs come `lead` places before the body's.
struct Round {
  size_t lead = 0;                  // the body's outputs before the states: the condition of `loop`
  Places states, slices, captures;  // inputs
  Places outs;                      // outputs of the body that are stacked

  size_t state_output(size_t state) const { return state - states.front() + lead; }
};

// The gradient of a loop's round by round way back.
class WayBack {
 public:
  WayBack(GradientContext& ctx, Round round)
      : ctx_(ctx), round_(std::move(round)), body_(*ctx.attrs().graph("body")) {
    if (has_effects(body_)) ctx.refuse("its body has effects, and would run twice");
    for (const size_t i : round_.states)
      if (ctx.x(i).type().container != Container::kTensor)
        ctx.refuse("it carries a {}", name(ctx.x(i).type().container));
    find_types();
    find_ways();
  }

  void run() {
    if (seeds_.empty()) return;
    const std::vector<Term> kept = forward();
    backward(kept);
  }

 private:
  bool scan() const { return ctx_.op().name == "scan"; }
  bool invariant(size_t state) const {
    return body_.outputs()[round_.state_output(state)] == body_.inputs()[state];
  }
  Term dy(size_t body_output) { return ctx_.dy(body_output - round_.lead); }
  int64_t axis(const char* attr, size_t i) const {
    return scan() ? entry_or_zero(ctx_.attrs(), attr, i) : 0;
  }

  // The types of the body's inputs: what the node tells, where that holds in every round.
  void find_types() {
    for (size_t i = 0; i < body_.inputs().size(); ++i) {
      types_.push_back(body_.inputs()[i]->type);
      if (contains(round_.captures, i) || contains(round_.states, i)) {
        types_[i] = ctx_.x(i).type();
      } else if (contains(round_.slices, i) && ctx_.x(i).type().ranked) {
        types_[i] = ctx_.x(i).type();
        const int64_t at =
            normalize_axis(axis("input_axes", i - round_.slices.front()), ctx_.x(i).rank(), "scan");
        types_[i].shape.erase(types_[i].shape.begin() + at);
      }
      types_[i].content.reset();
    }
    ValueTypes results = results_of();
    bool changed = false;
    for (const size_t i : round_.states) {
      if (same_shape(types_[i], results[round_.state_output(i)])) continue;
      types_[i] = body_.inputs()[i]->type;
      types_[i].content.reset();
      changed = true;
    }
    if (changed) results = results_of();
    for (const size_t i : round_.states) {
      const ValueType &before = types_[i], &after = results[round_.state_output(i)];
      result_types_.push_back(after);
      if (!before.ranked || !after.ranked) continue;
      bool fits = before.shape.size() == after.shape.size();
      for (size_t k = 0; fits && k < before.shape.size(); ++k)
        fits = !before.shape[k].known() || !after.shape[k].known() ||
               before.shape[k] == after.shape[k];
      if (!fits)
        ctx_.refuse("'{}' changes its shape from {} to {}", body_.inputs()[i]->name,
                    to_string(before), to_string(after));
    }
  }
  using ValueTypes = std::vector<ValueType>;
  ValueTypes results_of() const {
    Graph graph;
    std::vector<Value*> inputs;
    for (size_t i = 0; i < types_.size(); ++i)
      inputs.push_back(graph.input(fmt::format("in{}", i), types_[i]));
    ValueTypes types;
    for (const Value* value : copy_body(graph, body_, inputs)) types.push_back(value->type);
    return types;
  }

  // Which gradients are carried back, which outputs they come from and where they go.
  void find_ways() {
    Places from = round_.states;  // all inputs that can have a gradient
    for (const Places* places : {&round_.slices, &round_.captures})
      for (const size_t i : *places)
        if (ctx_.wants(i)) from.push_back(i);
    std::erase_if(from, [&](size_t i) { return !differentiable(*body_.inputs()[i]); });
    const GraphPtr graph = body_.clone();
    std::vector<Places> ways(body_.inputs().size());  // outputs that an input reaches
    for (const size_t i : from) {
      const GradientWalk walk(*graph, graph->node_list(), {graph->inputs()[i]});
      for (size_t k = 0; k < graph->outputs().size(); ++k)
        if (walk.needs(graph->outputs()[k])) ways[i].push_back(k);
    }
    // Active states depend on something wanted; live ones have an effect on an output's gradient.
    Places active, live, given;
    for (const size_t k : round_.outs)
      if (dy(k)) given.push_back(k);
    for (const size_t i : round_.states) {
      if (ctx_.wants(i)) active.push_back(i);
      if (contains(from, i) && dy(round_.state_output(i))) live.push_back(i);
    }
    const auto reaches = [&](size_t i, size_t output) { return contains(ways[i], output); };
    for (bool more = true; more;) {
      more = false;
      for (const size_t state : round_.states) {
        const size_t output = round_.state_output(state);
        const auto feeds = [&](size_t i) {
          return reaches(i, output) && (!contains(round_.states, i) || contains(active, i));
        };
        if (!contains(active, state) && std::any_of(from.begin(), from.end(), feeds))
          active.push_back(state), more = true;
        const auto into_live = [&](size_t i) { return reaches(state, round_.state_output(i)); };
        const auto into_given = [&](size_t k) { return reaches(state, k); };
        if (!contains(live, state) && contains(from, state) &&
            (std::any_of(live.begin(), live.end(), into_live) ||
             std::any_of(given.begin(), given.end(), into_given)))
          live.push_back(state), more = true;
      }
    }
    for (const size_t i : round_.states)
      if (contains(active, i) && contains(live, i)) carried_.push_back(i);
    for (const size_t i : carried_) seeds_.push_back(round_.state_output(i));
    for (const size_t k : given)
      if (std::any_of(from.begin(), from.end(), [&](size_t i) {
            return reaches(i, k) && (!contains(round_.states, i) || contains(carried_, i));
          }))
        seeds_.push_back(k);
    for (const size_t i : from) {
      const bool used =
          std::any_of(seeds_.begin(), seeds_.end(), [&](size_t k) { return reaches(i, k); });
      if (used && contains(round_.slices, i)) slices_.push_back(i);
      if (used && contains(round_.captures, i)) captures_.push_back(i);
    }
    for (const size_t i : round_.states)
      if (!invariant(i)) stacked_.push_back(i);
  }

  // The loop again. Returns its results: the states, and what went into each round.
  std::vector<Term> forward() {
    if (scan() && round_.states.empty()) return {};
    GraphPtr body = body_.clone();
    std::vector<Value*> outputs(
        body->outputs().begin(),
        body->outputs().begin() + static_cast<std::ptrdiff_t>(round_.lead + round_.states.size()));
    const auto keep = [&](size_t i) {
      outputs.push_back(body->add("identity", {body->inputs()[i]}));
    };
    if (!scan()) keep(0);
    for (const size_t i : stacked_) keep(i);
    const size_t count = outputs.size() - round_.lead;
    body->set_outputs(outputs);
    body->erase_dead();
    NamedAttrs attrs{{"body", AttrValue(std::move(body))}};
    if (scan()) {
      for (const char* name : {"states", "scan_inputs"})
        attrs.emplace_back(name, ctx_.attrs().i(name));
      for (const char* name : {"input_axes", "input_reversed"})
        attrs.emplace_back(name, ctx_.attrs().ints(name));
    } else {
      attrs.emplace_back("carried", ctx_.attrs().i("carried"));
    }
    std::vector<Term> inputs;
    for (size_t i = 0; i < ctx_.input_count(); ++i) inputs.push_back(ctx_.x(i));
    return ctx_.add_all(ctx_.op().name.c_str(), inputs, attrs, count);
  }

  void backward(const std::vector<Term>& kept) {
    auto graph = std::make_shared<Graph>();
    std::vector<Term> feeds;        // of the scan
    Ints axes, reversed;            // of its scan inputs
    std::vector<Value*> gradients;  // of the carried values, then of the captures
    std::vector<Value*> inputs(body_.inputs().size(), nullptr);  // of the body, in `graph`
    std::vector<Value*> dys(body_.outputs().size(), nullptr);
    const auto add_input = [&](const ValueType& type, const Term& feed) {
      feeds.push_back(feed);
      return graph->input(fmt::format("in{}", feeds.size()), type);
    };
    const auto add_slice = [&](const ValueType& type, const Term& feed, int64_t axis,
                               bool backwards) {
      axes.push_back(axis);
      reversed.push_back(backwards);
      return add_input(type, feed);
    };
    for (const size_t i : carried_) {
      const size_t output = round_.state_output(i), at = i - round_.states.front();
      const Term start = dy(output) ? dy(output) : ctx_.fill_like(kept[at], 0);
      gradients.push_back(dys[output] = add_input(result_types_[at], start));
    }
    for (const size_t i : captures_)
      gradients.push_back(add_input(types_[i], ctx_.fill_like(ctx_.x(i), 0)));

    size_t next = round_.states.size();  // in `kept`
    if (!scan()) inputs[0] = add_slice(types_[0], kept[next++], 0, true);
    for (const size_t i : stacked_) inputs[i] = add_slice(types_[i], kept[next++], 0, true);
    for (const size_t i : round_.slices) {
      const size_t at = i - round_.slices.front();
      inputs[i] =
          add_slice(types_[i], ctx_.x(i), axis("input_axes", at), !axis("input_reversed", at));
    }
    for (const size_t k : round_.outs) {
      if (!contains(seeds_, k)) continue;
      const size_t at = k - round_.outs.front();
      ValueType type = body_.outputs()[k]->type;
      type.content.reset();
      dys[k] = add_slice(type, dy(k), axis("output_axes", at), !axis("output_reversed", at));
    }
    const size_t scanned = axes.size();
    for (const size_t i : round_.captures) inputs[i] = add_input(types_[i], ctx_.x(i));
    for (const size_t i : round_.states)
      if (!inputs[i]) inputs[i] = add_input(types_[i], ctx_.x(i));
    if (!scan()) inputs[1] = graph->scalar(DType::kBool, 1);  // as it is in every round

    const std::vector<Value*> results = copy_body(*graph, body_, inputs);
    GradientSeeds seeds;
    for (const size_t k : seeds_) seeds.emplace_back(results[k], dys[k]);
    std::vector<Value*> xs;
    for (const Places* places : {&carried_, &captures_, &slices_})
      for (const size_t i : *places) xs.push_back(inputs[i]);
    std::vector<Value*> outputs = pull_back(*graph, seeds, xs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool sum = i >= carried_.size() && i < gradients.size();
      if (sum && outputs[i])
        outputs[i] = graph->add("add", {gradients[i], outputs[i]});
      else if (!outputs[i])
        outputs[i] = sum ? gradients[i] : filled_like(*graph, xs[i], 0);
    }
    graph->set_outputs(outputs);
    graph->erase_dead();

    Ints output_axes, output_reversed;
    for (const size_t i : slices_) {
      const size_t at = i - round_.slices.front();
      output_axes.push_back(axis("input_axes", at));
      output_reversed.push_back(!axis("input_reversed", at));
    }
    const std::vector<Term> dxs = ctx_.add_all("scan", feeds,
                                               {{"body", AttrValue(std::move(graph))},
                                                {"states", std::ssize(gradients)},
                                                {"scan_inputs", static_cast<int64_t>(scanned)},
                                                {"input_axes", axes},
                                                {"input_reversed", reversed},
                                                {"output_axes", output_axes},
                                                {"output_reversed", output_reversed}},
                                               outputs.size());
    size_t at = 0;
    for (const Places* places : {&carried_, &captures_, &slices_})
      for (const size_t i : *places) ctx_.set(i, dxs[at++]);
  }

  GradientContext& ctx_;
  Round round_;
  const Graph& body_;
  ValueTypes types_;          // of the body's inputs
  ValueTypes result_types_;   // of the states after a round
  Places carried_;            // states whose gradients are carried back
  Places slices_, captures_;  // inputs that get a gradient
  Places seeds_;              // outputs of the body that have one
  Places stacked_;            // states that are kept for each round
};

Places range(size_t first, size_t count) {
  Places places;
  for (size_t i = 0; i < count; ++i) places.push_back(first + i);
  return places;
}

}  // namespace

COMPLEX_GRADIENT(loop) {
  const size_t carried = ctx.attrs().i("carried");
  Round round;
  round.lead = 1;
  round.states = range(2, carried);
  round.captures = range(2 + carried, std::max<size_t>(ctx.input_count(), 2) - 2 - carried);
  round.outs = range(1 + carried, ctx.output_count() - carried);
  WayBack(ctx, std::move(round)).run();
}

COMPLEX_GRADIENT(scan) {
  const size_t states = ctx.attrs().i("states"), slices = ctx.attrs().i("scan_inputs");
  Round round;
  round.states = range(0, states);
  round.slices = range(states, slices);
  round.captures = range(states + slices, ctx.input_count() - states - slices);
  round.outs = range(states, ctx.output_count() - states);
  WayBack(ctx, std::move(round)).run();
}

}  // namespace anymps
