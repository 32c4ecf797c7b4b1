// SPDX-License-Identifier: Apache-2.0
// A transpose before a reduction moves behind it, where a product or another transpose takes it in:
//   matmul(reduce_sum_square(reshape(transpose(x))), w) {transpose_a}
//     ->  matmul(reduce_sum_square(reshape(x)), w)
// Spectra as convolutions are such: the parts of complex numbers are channels, which stand before
// the frames in the model and behind them in memory.
#include <algorithm>
#include <numeric>

#include "passes/fuse.h"

namespace anymps {

namespace {

// A reshape that cuts one axis into several and leaves the others.
struct Cut {
  size_t axis = 0;
  std::vector<int64_t> parts;
};

std::optional<Cut> cut_of(const Node& reshape) {
  const auto shape = known_ints(reshape, 1, "shape");
  if (!shape || reshape.attrs.b("allow_zero")) return std::nullopt;
  const Dims& from = reshape.input(0)->shape();
  std::optional<Cut> cut;
  size_t axis = 0;
  for (size_t i = 0; i < shape->size(); ++axis) {
    if (axis == from.size()) return std::nullopt;
    const int64_t extent = (*shape)[i];
    const bool last = i + 1 == shape->size() && axis + 1 == from.size();
    if ((extent == 0 && i == axis) || (extent == -1 && last) || from[axis].is(extent)) {
      ++i;
      continue;
    }
    if (cut || !from[axis].known()) return std::nullopt;
    cut = Cut{axis, {}};
    int64_t product = 1;
    for (; i < shape->size() && (*shape)[i] > 0 && product < from[axis].value(); ++i) {
      cut->parts.push_back((*shape)[i]);
      product *= (*shape)[i];
    }
    if (!from[axis].is(product)) return std::nullopt;
  }
  return axis == from.size() ? cut : std::nullopt;
}

// Whether the reader of a transposed value has no need of the transpose.
bool takes_in(const Node& reader, const Value* value, std::vector<int64_t> perm) {
  if (reader.is("transpose")) return true;
  if (!reader.is("matmul") || perm.size() < 2) return false;
  if (value != reader.input(0) && value != reader.input(1)) return false;
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return std::is_sorted(perm.begin(), perm.end());
}

Value* before_transpose(Graph& graph, Node& node) {
  if (!node.op->name.starts_with("reduce_") || !single_use(graph, node.output())) return nullptr;
  auto axes = known_ints(node, 1, "axes");
  if (!axes || axes->empty()) return nullptr;
  Value* value = node.input(0);
  std::optional<Cut> cut;
  if (const Node* reshape = made_by(value, "reshape")) {
    if (!single_use(graph, value) || rank_of(reshape->input(0)) < 0) return nullptr;
    cut = cut_of(*reshape);
    if (!cut) return nullptr;
    value = reshape->input(0);
  }
  const Node* transpose = made_by(value, "transpose");
  if (!transpose || !single_use(graph, value)) return nullptr;
  Value* x = transpose->input(0);
  const std::vector<int64_t> perm = perm_of(*transpose);

  // The axes that are reduced, as axes of x and numbers of their parts; and in x's order.
  std::vector<std::pair<int64_t, int64_t>> places;
  Dims shape = x->shape();
  for (size_t i = 0; i < perm.size(); ++i) {
    const bool here = cut && cut->axis == i;
    for (size_t k = 0; k < (here ? cut->parts.size() : 1); ++k)
      places.emplace_back(perm[i], static_cast<int64_t>(k));
    if (!here) continue;
    const auto at = shape.erase(shape.begin() + perm[i]);
    shape.insert(at, cut->parts.begin(), cut->parts.end());
  }
  auto ordered = places;
  std::sort(ordered.begin(), ordered.end());
  const auto place_of = [&](size_t axis) {
    const auto at = std::lower_bound(ordered.begin(), ordered.end(), places[axis]);
    return static_cast<int64_t>(at - ordered.begin());
  };
  std::vector<bool> reduced(places.size(), false);
  for (int64_t& axis : *axes) {
    if (axis < 0) axis += std::ssize(places);
    axis = place_of(static_cast<size_t>(axis));
    reduced[static_cast<size_t>(axis)] = true;
  }
  // Where each axis of the result comes from among those that stay.
  std::vector<int64_t> turned;
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t place = place_of(i);
    if (node.attrs.b("keep_dims"))
      turned.push_back(place);
    else if (!reduced[static_cast<size_t>(place)])
      turned.push_back(place - std::count(reduced.begin(), reduced.begin() + place, true));
  }
  if (!takes_in(*node.output()->users[0], node.output(), turned)) return nullptr;
  if (cut && !reshape_attr(x->shape(), shape)) return nullptr;
  Value* source = cut ? reshaped(graph, x, shape, node.name + ".parts") : x;
  Attrs attrs = node.attrs;
  attrs.set({"axes", *axes});
  Value* y = graph.add(node.op->name, {source}, attrs.named(), node.name);
  return graph.add("transpose", {y}, {{"perm", turned}}, node.name + ".turned");
}

}  // namespace

PASS(sink_transposes, 295, "a transpose before a reduction moves behind it, into a product") {
  return fuse_each(graph, context, before_transpose);
}

}  // namespace anymps
