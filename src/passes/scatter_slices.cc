// SPDX-License-Identifier: Apache-2.0
// Index tuples that name a box of the data, in order, are a range:
//   scatter_nd(update, [[0, 1], [0, 2], [1, 1], [1, 2]], x)  ->  slice_update(x, update)
// and where the box is all of x, the update takes its place. Exporters write x[.., a:b] = update
// with a tuple for each element: reading these takes longer than what they say.
#include "passes/fuse.h"

namespace anymps {

namespace {

constexpr int64_t kMostTuples = 1 << 24;  // they are looked at now

using Numbers = std::shared_ptr<const std::vector<double>>;

Numbers shared_numbers(const Value* value) {
  auto numbers = numbers_of(value, kMostTuples);
  return numbers ? std::make_shared<const std::vector<double>>(std::move(*numbers)) : nullptr;
}

// One entry of each tuple: numbers[first + the steps of where the tuple is].
struct Entries {
  Numbers numbers;
  int64_t first = 0;
  Strides steps;  // along each axis of the box
};

Strides steps_of(const Shape& box, int64_t depth) {
  Strides steps = contiguous_strides(box);
  for (int64_t& step : steps) step *= depth;
  return steps;
}

// Of an entry that has an axis of extent 1 behind those of the box; no numbers: it is not constant.
Entries entries_of(const Value* part, const Shape& box) {
  while (const Node* moved = made_by(part, {"reshape", "unsqueeze", "squeeze"}))
    part = moved->input(0);
  if (const Node* expand = made_by(part, "expand")) {
    const Value* small = expand->input(0);
    if (!part->type.static_shape() || to_shape(part->shape()) != box || !small->is_constant())
      return {};
    const Shape shape = to_shape(small->shape());
    Strides steps(box.size(), 0);
    const Strides own = contiguous_strides(shape);
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != 1) steps[box.size() - shape.size() + d] = own[d];
    return {shared_numbers(small), 0, steps};
  }
  const Numbers numbers = shared_numbers(part);
  if (!numbers || std::ssize(*numbers) != element_count(box)) return {};
  return {numbers, 0, steps_of(box, 1)};
}

// Entry k of the tuples for each k; empty if they are not all constant.
std::vector<Entries> entries_of(const Value* indices, const Shape& box, int64_t depth) {
  std::vector<Entries> entries;
  if (indices->is_constant()) {
    const Numbers numbers = shared_numbers(indices);
    for (int64_t k = 0; numbers && k < depth; ++k)
      entries.push_back({numbers, k, steps_of(box, depth)});
    return entries;
  }
  const Node* concat = made_by(indices, "concat");
  const int64_t last = rank_of(indices) - 1;
  if (!concat || std::ssize(concat->inputs) != depth) return {};
  if (const int64_t axis = concat->attrs.i("axis"); axis != last && axis != -1) return {};
  for (const Value* part : concat->inputs) {
    if (rank_of(part) != last + 1 || !part->shape().back().is(1)) return {};
    entries.push_back(entries_of(part, box));
    if (!entries.back().numbers) return {};
  }
  return entries;
}

// Whether entries differ along one axis only, or are at least the same wherever they are read.
bool follows(const Entries& entries, const Shape& box, size_t axis) {
  Shape others = box;
  others[axis] = 1;
  Strides steps = entries.steps;
  for (size_t d = 0; d < box.size(); ++d)
    if (d != axis && steps[d] == 0) others[d] = 1;  // numbers are there once
  const std::vector<double>& numbers = *entries.numbers;
  const int64_t count = element_count(others);
  for (int64_t other = 1; other < count; ++other) {
    int64_t at = entries.first, left = other;
    for (size_t d = box.size(); d-- > 0; left /= others[d]) at += left % others[d] * steps[d];
    for (int64_t i = 0; i < box[axis]; ++i)
      if (numbers[at + i * steps[axis]] != numbers[entries.first + i * steps[axis]]) return false;
  }
  return true;
}

struct Range {
  int64_t start, step;
};

// Which places the tuples name along an axis of `extent`.
std::optional<Range> range_of(const Entries& entries, const Shape& box, size_t axis,
                              int64_t extent) {
  const int64_t count = box[axis];
  const auto at = [&](int64_t i) {
    return static_cast<int64_t>((*entries.numbers)[entries.first + i * entries.steps[axis]]);
  };
  const int64_t start = at(0), step = count > 1 ? at(1) - start : 1;
  const int64_t end = start + (count - 1) * step;
  if (step < 1 || start < -extent || end >= extent || (start < 0 && end >= 0)) return std::nullopt;
  for (int64_t i = 0; i < count; ++i)
    if (at(i) != start + i * step) return std::nullopt;
  if (!follows(entries, box, axis)) return std::nullopt;
  return Range{start < 0 ? start + extent : start, step};
}

Value* as_slice(Graph& graph, Node& node) {
  if (!node.is("scatter_nd") || !node.input(2) || node.attrs.s("mode") != "set" ||
      node.attrs.i("batch_dims") != 0)
    return nullptr;
  Value *updates = node.input(0), *indices = node.input(1), *data = node.input(2);
  if (!indices->type.static_shape() || !data->type.ranked) return nullptr;
  Shape box = to_shape(indices->shape());
  const int64_t depth = box.back();
  box.pop_back();
  const int64_t tuples = element_count(box);
  if (depth == 0 || std::ssize(box) != depth || tuples == 0 || tuples > kMostTuples) return nullptr;
  for (int64_t k = 0; k < depth; ++k)
    if (!data->shape()[k].known()) return nullptr;
  const std::vector<Entries> entries = entries_of(indices, box, depth);
  if (entries.empty()) return nullptr;
  std::vector<int64_t> starts, ends, axes, steps;
  bool all = true;
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t extent = data->shape()[k].value();
    const auto range = range_of(entries[k], box, k, extent);
    if (!range) return nullptr;
    all = all && box[k] == extent;
    starts.push_back(range->start);
    ends.push_back(range->start + (box[k] - 1) * range->step + 1);
    axes.push_back(k);
    steps.push_back(range->step);
  }
  if (all && same_shape(updates, data)) return updates;
  return graph.add("slice_update", {data, updates},
                   {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}},
                   node.name);
}

}  // namespace

PASS(scatter_slices, 296, "index tuples that name a box of the data become a range") {
  return fuse_each(graph, context, as_slice);
}

}  // namespace anymps
