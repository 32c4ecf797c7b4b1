// SPDX-License-Identifier: Apache-2.0
// A border that a convolution or a pooling can make itself becomes part of its pads:
//   conv(pad(x, zeros))          ->  conv(x) {pads}
//   avg_pool(pad(x, zeros))      ->  avg_pool(x) {pads, count_include_pad}
//   max_pool(pad(x, -infinity))  ->  max_pool(x) {pads}      (and of zeros, if x is never negative)
// also through a transpose or an unsqueeze, as converters leave them in between: to channels first,
// and where a convolution of one axis is written as one of two.
#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/epilogue.h"
#include "passes/fuse.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;

// A border of one value, in the order of the axes of the tensor that is read.
struct Border {
  Value* source = nullptr;
  double value = 0;
  Ints begin, end;          // for each axis
  Node* between = nullptr;  // a transpose or unsqueeze between the border and its reader
};

// The axis of `node`'s input that each axis of its output is; -1: a new one.
std::optional<Ints> input_axes(const Node& node) {
  if (node.is("transpose")) return perm_of(node);
  const int64_t rank = rank_of(node.output());
  const auto axes = known_ints(node, 1, "axes");
  if (!axes || rank < 0) return std::nullopt;
  Ints from(rank, 0);
  for (const int64_t axis : *axes) from[axis < 0 ? axis + rank : axis] = -1;
  int64_t next = 0;
  for (int64_t& axis : from) axis = axis < 0 ? -1 : next++;
  return from;
}

std::optional<Border> border_of(Value* value) {
  Border border;
  border.between = made_by(value, {"transpose", "unsqueeze"});
  const Node* pad = made_by(border.between ? border.between->input(0) : value, "pad");
  if (!pad || pad->attrs.s("mode") != "constant" || pad->input(1) || pad->input(3))
    return std::nullopt;
  border.source = pad->input(0);
  border.value = pad->attrs.f("value");
  if (pad->input(2)) {
    const auto number = scalar_of(pad->input(2));
    if (!number) return std::nullopt;
    border.value = *number;
  }
  const Ints& pads = pad->attrs.ints("pads");
  const int64_t rank = rank_of(border.source);
  if (rank < 1 || std::ssize(pads) != 2 * rank) return std::nullopt;
  if (std::any_of(pads.begin(), pads.end(), [](int64_t count) { return count < 0; }))
    return std::nullopt;
  border.begin.assign(pads.begin(), pads.begin() + rank);
  border.end.assign(pads.begin() + rank, pads.end());
  if (!border.between) return border;
  const auto axes = input_axes(*border.between);
  if (!axes) return std::nullopt;
  Ints begin, end;
  for (const int64_t axis : *axes) {
    begin.push_back(axis < 0 ? 0 : border.begin[axis]);
    end.push_back(axis < 0 ? 0 : border.end[axis]);
  }
  border.begin = std::move(begin);
  border.end = std::move(end);
  return border;
}

// Whether no element is below zero; a NaN is above all in a pooling, with a border or without.
bool cannot_be_negative(const Value* value, int steps = 4) {
  const Node* node = value->producer;
  if (!node || steps == 0) return false;
  if (node->is("relu") || node->is("sigmoid") || node->is("hard_sigmoid") || node->is("abs") ||
      node->is("square") || node->is("exp") || node->is("softmax"))
    return true;
  if (node->is("clamp")) {
    const auto bounds = clamp_bounds(*node);
    return bounds && bounds->first >= 0;
  }
  if (node->is("conv") || node->is("conv_transpose")) {
    const std::string& activation = node->attrs.s("activation");
    return activation == "relu" || activation == "sigmoid" ||
           (activation == "clamp" && node->attrs.f("alpha") >= 0);
  }
  const bool moves =
      node->is("transpose") || node->is("reshape") || node->is("max_pool") || node->is("avg_pool");
  return moves && cannot_be_negative(node->input(0), steps - 1);
}

// Whether a largest element is the same with the border: what it holds never wins.
bool never_wins(const Border& border, const Value* x) {
  if (border.value == 0 && cannot_be_negative(x)) return true;
  if (is_float(x->dtype())) return border.value == -std::numeric_limits<double>::infinity();
  return contains(bit(DType::kI8) | bit(DType::kI16) | bit(DType::kI32), x->dtype()) &&
         border.value <= -std::ldexp(1.0, 8 * static_cast<int>(size_of(x->dtype())) - 1);
}

// The extents of the window; empty if they are not all known.
Ints window_extents(const Node& node) {
  if (!node.is("conv")) return node.attrs.ints("kernel");
  const Value* w = node.input(1);
  if (!w->type.ranked) return {};
  const Dims& shape = w->shape();
  const size_t first = node.attrs.s("weights_layout") == "*IO" ? 0 : 2;
  Ints kernel;
  for (size_t i = first; i + 2 < shape.size() + first; ++i) {
    if (!shape[i].known()) return {};
    kernel.push_back(shape[i].value());
  }
  return kernel;
}

// Whether the values that a node reads are the same when it makes the border itself, `padded` being
// what it does already.
bool keeps_windows(const Node& node, const Border& border, bool padded) {
  const bool last = node.attrs.s("layout") == "channels_last";
  const size_t rank = border.begin.size(), channel = last ? rank - 1 : 1;
  for (const size_t axis : {size_t{0}, channel})
    if (border.begin[axis] != 0 || border.end[axis] != 0) return false;
  if (node.is("conv")) return border.value == 0;
  if (node.attrs.b("ceil_mode") || node.outputs.size() != 1) return false;
  // A window of a pooling that finds nothing but its own border has another value.
  const Ints& dilations = node.attrs.ints("dilations");
  if (std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; }))
    return false;
  if (node.is("max_pool")) return never_wins(border, border.source);
  return border.value == 0 && (!padded || node.attrs.b("count_include_pad"));
}

// The node's pads together with the border; nothing if a window could lie outside altogether.
std::optional<Ints> joint_pads(const Node& node, const Border& border) {
  const std::string& automatic = node.attrs.s("auto_pad");
  if (automatic != "explicit" && automatic != "valid") return std::nullopt;
  const Ints kernel = window_extents(node);
  const size_t count = kernel.size();
  if (count == 0 || border.begin.size() != count + 2) return std::nullopt;
  Ints pads = automatic == "explicit" ? node.attrs.ints("pads") : Ints();
  pads.resize(2 * count, 0);
  const bool padded = std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; });
  if (!keeps_windows(node, border, padded)) return std::nullopt;
  const Ints& dilations = node.attrs.ints("dilations");
  const size_t first = node.attrs.s("layout") == "channels_last" ? 1 : 2;
  for (size_t i = 0; i < count; ++i) {
    pads[i] += border.begin[first + i];
    pads[count + i] += border.end[first + i];
    const int64_t reach = (kernel[i] - 1) * (dilations.empty() ? 1 : dilations[i]);
    if (pads[i] > reach || pads[count + i] > reach) return std::nullopt;
  }
  return pads;
}

bool is_padded_window(const Node& node) {
  return node.is("conv") || node.is("max_pool") || node.is("avg_pool");
}

// While somebody reads the border as it is, it is there for all.
bool all_can_pad(const Graph& graph, const Value* value) {
  if (graph.is_output(value)) return false;
  return std::all_of(value->users.begin(), value->users.end(), [&](Node* user) {
    if (user->is("transpose") || user->is("unsqueeze")) return all_can_pad(graph, user->output());
    if (!is_padded_window(*user) || user->input(0) != value || user->input(1) == value ||
        user->input(3) == value)
      return false;
    const auto border = border_of(user->input(0));
    return border && joint_pads(*user, *border);
  });
}

Value* without_border(Graph& graph, Node& node) {
  if (!is_padded_window(node)) return nullptr;
  const auto border = border_of(node.input(0));
  if (!border) return nullptr;
  const auto pads = joint_pads(node, *border);
  const Value* padded = border->between ? border->between->input(0) : node.input(0);
  if (!pads || !all_can_pad(graph, padded)) return nullptr;
  Attrs attrs = node.attrs;
  attrs.set({"pads", *pads});
  attrs.set({"auto_pad", "explicit"});
  if (node.is("avg_pool")) attrs.set({"count_include_pad", true});
  std::vector<Value*> inputs = node.inputs;
  inputs[0] = border->source;
  if (Node* between = border->between) {
    std::vector<Value*> sources = between->inputs;
    sources[0] = border->source;
    inputs[0] = graph.add(between->op->name, sources, between->attrs.named(),
                          between->output()->name + ".inner");
  }
  return graph.add(node.op->name, inputs, attrs.named(), node.name);
}

}  // namespace

PASS(fuse_pad, 340, "a border of zeros becomes part of the convolution or pooling behind it") {
  return fuse_each(graph, context, without_border);
}

}  // namespace anymps
