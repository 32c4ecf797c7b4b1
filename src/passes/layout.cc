// SPDX-License-Identifier: Apache-2.0
// One layout for a whole region. For drivers that prefer channels last, convolutions are turned to
// it, and whatever stands between them follows, so that transposes remain at the region's borders
// alone:
//   conv -> relu -> max_pool -> conv  ->  transpose -> conv -> relu -> max_pool -> conv ->
//   transpose
// The walk goes once through the graph and keeps, for each channels-first value, its channels-last
// twin. A node that can work on the twins is made again on them; its old output becomes a transpose
// of the new one, which dies if all its readers follow too.
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "ops/elementwise/elementwise_program.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;

// Axes of the channels-last form, as axes of the channels-first form: [0, 2, 3, 1].
Ints to_last(int64_t rank) {
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  return perm;
}

// And back: [0, 3, 1, 2].
Ints to_first(int64_t rank) {
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  return perm;
}

// Where axis `axis` of the channels-first form lies in the other.
int64_t moved_axis(int64_t axis, int64_t rank) {
  if (axis < 0) axis += rank;
  return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
}

// A list with one entry for each axis, in the new order of the axes.
template <typename T>
std::vector<T> moved(const std::vector<T>& list, size_t first, int64_t rank) {
  std::vector<T> result;
  for (int64_t axis : to_last(rank)) result.push_back(list[first + static_cast<size_t>(axis)]);
  return result;
}

class LayoutWalk {
 public:
  explicit LayoutWalk(Graph& graph) : graph_(graph), rewriter_(graph) {}

  int run() {
    const auto nodes = graph_.node_list();
    const bool images =
        std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return asks(*node->op); });
    if (!images) return 0;
    return rewriter_.each([&](Node& node) { return visit(node); });
  }

 private:
  static bool asks(const Op& op) {
    return op.layout == LayoutRule::kConvolution || op.layout == LayoutRule::kImage;
  }

  bool visit(Node& node) {
    const auto open = [](const Value* value) { return value && rank_of(value) < 0; };
    if (node.outputs.empty() || open(node.output()) ||
        std::any_of(node.inputs.begin(), node.inputs.end(), open))
      return false;
    if (node.is("transpose")) {  // a border that is already there
      const int64_t rank = rank_of(node.output());
      if (rank >= 4 && perm_of(node) == to_first(rank)) twins_[node.output()] = node.input(0);
      return false;
    }
    if (asks(*node.op)) return convolution(node);
    if (node.op->layout != LayoutRule::kNone) return twin(node.input(0)) && follows(node);
    return is_elementwise(*node.op, node.attrs) && elementwise(node);
  }

  bool follows(Node& node) {
    using Follow = bool (LayoutWalk::*)(Node&);
    static constexpr std::pair<LayoutRule, Follow> kFollows[] = {
        {LayoutRule::kLayout, &LayoutWalk::with_layout},
        {LayoutRule::kElements, &LayoutWalk::elements},
        {LayoutRule::kAxis, &LayoutWalk::with_axis},
        {LayoutRule::kJoin, &LayoutWalk::join},
        {LayoutRule::kSlice, &LayoutWalk::slice},
        {LayoutRule::kPads, &LayoutWalk::pad},
        {LayoutRule::kSizes, &LayoutWalk::resize},
        {LayoutRule::kReduction, &LayoutWalk::reduction},
    };
    for (const auto& [rule, follow] : kFollows)
      if (node.op->layout == rule) return (this->*follow)(node);
    return false;
  }

  Value* twin(const Value* value) const {
    auto it = twins_.find(value);
    return it == twins_.end() ? nullptr : it->second;
  }

  // The channels-last form of a value, by a transpose if there is none yet.
  Value* last_form(Value* value) {
    if (Value* known = twin(value)) return known;
    Value* made = graph_.add("transpose", {value}, {{"perm", to_last(rank_of(value))}},
                             value->name + ".nhwc");
    return twins_[value] = made;
  }

  // The outputs of `made` are the channels-last forms of those of `node`; numbers are the same.
  bool follow(Node& node, Node* made) {
    const std::vector<Value*> outputs = node.outputs;
    std::vector<Value*> backs;
    for (Value* output : made->outputs)
      backs.push_back(rank_of(output) == 0
                          ? output
                          : graph_.add("transpose", {output}, {{"perm", to_first(rank_of(output))}},
                                       output->name + ".nchw"));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (backs[i] != made->outputs[i]) twins_[backs[i]] = made->outputs[i];
      graph_.replace_uses(outputs[i], backs[i]);
    }
    return true;
  }

  Node* again(Node& node, std::vector<Value*> inputs, const Attrs& attrs) {
    return graph_.add_node(*node.op, std::move(inputs), attrs.named(), node.name,
                           node.outputs.size());
  }

  bool convolution(Node& node) {
    if (node.attrs.s("layout") != "channels_first" || better_on_planes(node)) return false;
    std::vector<Value*> inputs = node.inputs;
    inputs[0] = last_form(inputs[0]);
    if (node.op->layout == LayoutRule::kConvolution && node.input(3))
      inputs[3] = last_form(inputs[3]);
    Attrs attrs = node.attrs;
    attrs.set({"layout", "channels_last"});
    return follow(node, again(node, inputs, attrs));
  }

  // A convolution that would be a region by itself, between two transposes: drivers have kernels on
  // planes for weights that come with each run, where a window is one pixel or one channel.
  bool better_on_planes(const Node& node) const {
    if (!node.is("conv") || node.input(1)->is_constant() || twin(node.input(0))) return false;
    const Dims& weights = node.input(1)->shape();
    const bool pixels = std::all_of(weights.begin() + 2, weights.end(),
                                    [](const Dim& extent) { return extent.is(1); });
    if (!pixels && !weights[1].is(1)) return false;
    const std::vector<Node*>& readers = node.output()->users;
    return std::none_of(readers.begin(), readers.end(), [](const Node* reader) {
      return reader->op->layout != LayoutRule::kNone || is_elementwise(*reader->op, reader->attrs);
    });
  }

  bool with_layout(Node& node) {
    // The indices of max_pool are places in the channels-first tensor.
    if (node.outputs.size() != 1 || node.attrs.s("layout") != "channels_first") return false;
    Attrs attrs = node.attrs;
    attrs.set({"layout", "channels_last"});
    return follow(node, again(node, {twin(node.input(0))}, attrs));
  }

  bool elements(Node& node) { return follow(node, again(node, {twin(node.input(0))}, node.attrs)); }

  bool with_axis(Node& node) {
    // Statistics of the channels have other axes.
    if (std::any_of(node.outputs.begin(), node.outputs.end(),
                    [&](const Value* output) { return rank_of(output) != rank_of(node.input(0)); }))
      return false;
    std::vector<Value*> inputs = node.inputs;
    for (size_t i = 1; i < inputs.size(); ++i)
      if (inputs[i] && rank_of(inputs[i]) > 1) return false;
    inputs[0] = twin(inputs[0]);
    Attrs attrs = node.attrs;
    attrs.set({"axis", moved_axis(attrs.i("axis"), rank_of(node.input(0)))});
    return follow(node, again(node, inputs, attrs));
  }

  // Whether a convolution reads the value, perhaps behind elementwise nodes and joins: then one
  // operand that comes from outside of the region is brought into it, which the convolution would
  // do otherwise.
  static bool feeds_convolution(const Value* value, int depth = 0) {
    constexpr int kMostNodes = 3;
    return std::any_of(value->users.begin(), value->users.end(), [&](const Node* reader) {
      if (asks(*reader->op)) return reader->input(0) == value;
      const bool follows =
          reader->op->layout == LayoutRule::kJoin || is_elementwise(*reader->op, reader->attrs);
      return follows && depth < kMostNodes && feeds_convolution(reader->output(), depth + 1);
    });
  }

  bool join(Node& node) {
    std::vector<Value*> inputs;
    const auto here = [&](const Value* input) { return twin(input) || input->is_constant(); };
    const bool all = std::all_of(node.inputs.begin(), node.inputs.end(), here),
               any = std::any_of(node.inputs.begin(), node.inputs.end(), here);
    if (!all && !(any && feeds_convolution(node.output()))) return false;
    for (Value* input : node.inputs) inputs.push_back(last_form(input));
    Attrs attrs = node.attrs;
    attrs.set({"axis", moved_axis(attrs.i("axis"), rank_of(node.output()))});
    return follow(node, again(node, inputs, attrs));
  }

  bool slice(Node& node) {
    if (node.input(3)) return false;
    const int64_t rank = rank_of(node.input(0));
    Ints axes = node.attrs.ints("axes");
    if (axes.empty()) {
      // Starts that are computed are as many as there are extents in the list.
      const Value* starts = node.input(1);
      if (starts && (rank_of(starts) != 1 || !starts->shape()[0].known())) return false;
      axes.resize(starts ? starts->shape()[0].value() : std::ssize(node.attrs.ints("starts")));
      std::iota(axes.begin(), axes.end(), 0);
    }
    for (int64_t& axis : axes) axis = moved_axis(axis, rank);
    Attrs attrs = node.attrs;
    attrs.set({"axes", axes});
    std::vector<Value*> inputs = node.inputs;
    inputs[0] = twin(inputs[0]);
    return follow(node, again(node, inputs, attrs));
  }

  bool pad(Node& node) {
    const int64_t rank = rank_of(node.input(0));
    const Ints& pads = node.attrs.ints("pads");
    if (node.input(1) || node.input(3) || std::ssize(pads) != 2 * rank) return false;
    Ints list = moved(pads, 0, rank);
    const Ints ends = moved(pads, rank, rank);
    list.insert(list.end(), ends.begin(), ends.end());
    Attrs attrs = node.attrs;
    attrs.set({"pads", list});
    return follow(node, again(node, {twin(node.input(0)), nullptr, node.input(2)}, attrs));
  }

  bool resize(Node& node) {
    const int64_t rank = rank_of(node.input(0));
    const size_t count = rank;
    const Ints& sizes = node.attrs.ints("sizes");
    const std::vector<double>& scales = node.attrs.floats("scales");
    Attrs attrs = node.attrs;
    Ints axes = attrs.ints("axes");
    const bool plain =
        node.inputs.size() == 1 && attrs.floats("roi").empty() && attrs.floats("offsets").empty();
    if (axes.empty() && plain) {
      if ((!sizes.empty() && sizes.size() != count) || (!scales.empty() && scales.size() != count))
        return false;
      if (!sizes.empty()) attrs.set({"sizes", moved(sizes, 0, rank)});
      if (!scales.empty()) attrs.set({"scales", moved(scales, 0, rank)});
    } else {  // the other lists stay as they are: `axes` says what they are about
      if (axes.empty()) {
        axes.resize(count);
        std::iota(axes.begin(), axes.end(), 0);
      }
      for (int64_t& axis : axes) axis = moved_axis(axis, rank);
      attrs.set({"axes", axes});
    }
    std::vector<Value*> inputs = node.inputs;
    inputs[0] = twin(inputs[0]);
    return follow(node, again(node, inputs, attrs));
  }

  bool reduction(Node& node) {
    if (node.inputs.size() > 1 || node.attrs.s("empty_axes") != "all") return false;
    const int64_t rank = rank_of(node.input(0));
    Ints axes = node.attrs.ints("axes");
    std::vector<bool> reduced(rank, axes.empty());
    for (int64_t& axis : axes) {
      reduced[axis < 0 ? axis + rank : axis] = true;
      axis = moved_axis(axis, rank);
    }
    std::sort(axes.begin(), axes.end());
    Attrs attrs = node.attrs;
    attrs.set({"axes", axes});
    if (attrs.b("keep_dims")) return follow(node, again(node, {twin(node.input(0))}, attrs));
    // What remains must come in the same order.
    int64_t previous = -1;
    for (int64_t axis : to_last(rank)) {
      if (reduced[axis]) continue;
      if (axis < previous) return false;
      previous = axis;
    }
    return rewriter_.replace(node.output(), again(node, {twin(node.input(0))}, attrs)->output());
  }

  // Follows if all inputs of full size have twins, or some and a convolution is behind it; what is
  // broadcast is brought into the new order.
  bool elementwise(Node& node) {
    const int64_t rank = rank_of(node.output());
    if (rank < 3 || node.outputs.size() != 1) return false;
    bool any = false, all = true;
    for (Value* input : node.inputs) {
      if (!input) continue;
      if (rank_of(input) < 0 || rank_of(input) > rank) return false;
      if (Value* known = twin(input); known && rank_of(input) == rank)
        any = true;
      else
        all = all && cheap(input);
    }
    if (!any || (!all && !feeds_convolution(node.output()))) return false;
    std::vector<Value*> inputs;
    for (Value* input : node.inputs) {
      if (!input || is_scalar(input)) {
        inputs.push_back(input);
        continue;
      }
      if (const int64_t lead = rank - rank_of(input); lead > 0) {
        Ints axes(lead);
        std::iota(axes.begin(), axes.end(), 0);
        input = graph_.add("unsqueeze", {input}, {{"axes", axes}}, input->name + ".wide");
      }
      inputs.push_back(last_form(input));
    }
    return follow(node, again(node, inputs, node.attrs));
  }

  // Costs nothing to bring into channels last: a constant, or no more than one axis that is not 1.
  static bool cheap(const Value* value) {
    if (value->is_constant()) return true;
    int64_t wide = 0;
    for (size_t i = 0; i < value->shape().size(); ++i) wide += !value->shape()[i].is(1);
    return wide <= 1 || (wide == 2 && value->shape().size() >= 3 && !value->shape()[0].is(1) &&
                         !value->shape()[1].is(1));
  }

  Graph& graph_;
  Rewriter rewriter_;
  std::unordered_map<const Value*, Value*> twins_;
};

}  // namespace

PASS(layout, 600, "convolutions and what stands between them become channels last") {
  if (!context.prefers_nhwc || !context.fuses) return 0;
  return LayoutWalk(graph).run();
}

}  // namespace anymps
