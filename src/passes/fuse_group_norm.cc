// SPDX-License-Identifier: Apache-2.0
// Finds group normalization written as one of fewer, longer channels, and takes what scales and
// shifts the channels behind it into it:
//   reshape(instance_norm(reshape(x, [N, groups, -1])), x's shape)  ->  group_norm(x)
//   group_norm(x, gamma, beta) * s + t  ->  group_norm(x, gamma * s, beta * s + t)
#include <algorithm>

#include "passes/fuse.h"

namespace anymps {

namespace {

using GroupNumbers = std::vector<double>;
constexpr int64_t kMostGrouped = 1 << 20;

// The scale (input 1) or shift (input 2) of a norm's channels, each for `times` channels.
std::optional<GroupNumbers> norm_parameter(const Node& norm, size_t i, int64_t channels,
                                           int64_t times) {
  if (!norm.input(i)) return GroupNumbers(channels * times, i == 1 ? 1.0 : 0.0);
  const auto given = numbers_of(norm.input(i), kMostGrouped);
  if (!given || std::ssize(*given) != channels) return std::nullopt;
  GroupNumbers all;
  for (const double number : *given) all.insert(all.end(), times, number);
  return all;
}

// Null where all are what they are without.
Value* parameter_value(Graph& graph, const GroupNumbers& numbers, double absent, DType dtype,
                       const std::string& name) {
  if (std::all_of(numbers.begin(), numbers.end(), [&](double n) { return n == absent; }))
    return nullptr;
  return graph.constant(constant_from(dtype, {std::ssize(numbers)}, numbers), name);
}

Value* with_parameters(Graph& graph, const char* op, Value* x, const GroupNumbers& gamma,
                       const GroupNumbers& beta, const NamedAttrs& attrs, const std::string& name) {
  const DType dtype = x->dtype();
  return graph
      .add_node(get_op(op),
                {x, parameter_value(graph, gamma, 1, dtype, name + ".gamma"),
                 parameter_value(graph, beta, 0, dtype, name + ".beta")},
                attrs, name, 1)
      ->output();
}

// Whether a norm of [N, groups, rest] is one of each group.
bool of_groups(const Node& norm) {
  if (norm.outputs.size() != 1 || rank_of(norm.input(0)) != 3) return false;
  const int64_t axis = norm.attrs.i("axis");
  if (norm.is("instance_norm")) return axis == 1 || axis == -2;
  return norm.is("layer_norm") && (axis == -1 || axis == 2) && !norm.input(1) && !norm.input(2);
}

Value* group_norm(Graph& graph, Node& back) {
  if (!back.is("reshape")) return nullptr;
  Node* norm = made_by(back.input(0), {"instance_norm", "layer_norm"});
  if (!norm || !single_use(graph, back.input(0)) || !of_groups(*norm)) return nullptr;
  Node* apart = made_by(norm->input(0), "reshape");
  if (!apart || !single_use(graph, norm->input(0))) return nullptr;
  Value* x = apart->input(0);
  if (rank_of(x) < 3 || !same_shape(x, back.output())) return nullptr;
  const Dims &image = x->shape(), &grouped = norm->input(0)->shape();
  if (!(image[0] == grouped[0]) || !image[1].known() || !grouped[1].known()) return nullptr;
  const int64_t channels = image[1].value(), groups = grouped[1].value();
  if (groups < 1 || channels < 1 || channels % groups != 0) return nullptr;
  const auto gamma = norm_parameter(*norm, 1, groups, channels / groups),
             beta = norm_parameter(*norm, 2, groups, channels / groups);
  if (!gamma || !beta) return nullptr;
  return with_parameters(graph, "group_norm", x, *gamma, *beta,
                         {{"groups", groups}, {"epsilon", norm->attrs.f("epsilon")}}, back.name);
}

// One number for each channel from a constant that broadcasts along all other axes.
std::optional<GroupNumbers> normed_channels(const Value* value, int64_t rank, int64_t axis,
                                            int64_t channels) {
  if (!value->is_constant() || rank_of(value) < 0 || rank_of(value) > rank) return std::nullopt;
  const int64_t lead = rank - rank_of(value);
  for (int64_t i = 0; i < rank_of(value); ++i)
    if (const Dim& extent = value->shape()[i];
        !extent.is(1) && !(lead + i == axis && extent.is(channels)))
      return std::nullopt;
  auto numbers = numbers_of(value, channels);
  if (numbers && numbers->size() == 1) numbers->assign(channels, (*numbers)[0]);
  return numbers;
}

Value* scaled_norm(Graph& graph, Node& node) {
  if (!node.is("mul") && !node.is("add")) return nullptr;
  Value* made = nullptr;
  either_order(node, [&](Value* value, Value* other) {
    Node* norm = made_by(value, {"group_norm", "instance_norm"});
    if (!norm || norm->outputs.size() != 1 || !single_use(graph, value) ||
        !same_shape(value, node.output()))
      return false;
    const int64_t rank = rank_of(value), axis = (norm->attrs.i("axis") + rank) % rank;
    const Dim& extent = value->shape()[axis];
    if (!extent.known()) return false;
    const auto numbers = normed_channels(other, rank, axis, extent.value());
    auto gamma = norm_parameter(*norm, 1, extent.value(), 1),
         beta = norm_parameter(*norm, 2, extent.value(), 1);
    if (!numbers || !gamma || !beta) return false;
    for (size_t c = 0; c < numbers->size(); ++c) {
      if (node.is("mul")) {
        (*gamma)[c] *= (*numbers)[c];
        (*beta)[c] *= (*numbers)[c];
      } else {
        (*beta)[c] += (*numbers)[c];
      }
    }
    made = with_parameters(graph, norm->op->name.c_str(), norm->input(0), *gamma, *beta,
                           norm->attrs.named(), node.name);
    return true;
  });
  return made;
}

}  // namespace

PASS(fuse_group_norm, 325, "group normalization from reshapes, with its scale and shift") {
  return fuse_each(graph, context, [](Graph& of, Node& node) {
    Value* value = group_norm(of, node);
    return value ? value : scaled_norm(of, node);
  });
}

}  // namespace anymps
