// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/operators/indexing.h"

#include <algorithm>
#include <numeric>

namespace anymps::executorch {

namespace {

using Ints = std::vector<int64_t>;

// Axis axes[k] of x is looked up at tensors[k].
struct Places {
  Ints axes;  // rising
  Values tensors;
  Value* mask = nullptr;  // set when there is just a mask; it covers all of `axes`

  bool adjacent() const { return axes.back() - axes.front() + 1 == std::ssize(axes); }
  bool has(int64_t axis) const { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }
};

bool is_mask(const Value* index) {
  return index->dtype() == DType::kBool || index->dtype() == DType::kU8;
}

Places places_of(NodeBuilder& c, const Value* x, const Values& indices) {
  Places places;
  int64_t axis = 0, given = 0;
  for (Value* index : indices) {
    if (!index) {
      ++axis;
      continue;
    }
    ++given;
    const int64_t covers = is_mask(index) ? c.rank(index) : 1;
    c.check(axis + covers <= c.rank(x), "more axes are indexed than the input of rank {} has",
            c.rank(x));
    if (!is_mask(index)) {
      places.tensors.push_back(contains(kIndex, index->dtype()) ? index
                                                                : c.cast(index, DType::kI64));
    } else {
      c.check(covers > 0, "a mask of rank 0 is not supported");
      places.mask = c.cast(index, DType::kBool);
      Value* found = c.add("nonzero", {places.mask});
      for (Value* row : c.add_all("split", {found}, {{"axis", 0}}, covers))
        places.tensors.push_back(c.add("squeeze", {row}, {{"axes", Ints{0}}}));
    }
    for (int64_t k = 0; k < covers; ++k) places.axes.push_back(axis++);
  }
  c.check(given > 0, "there is no index");
  if (given > 1) places.mask = nullptr;
  // All of one shape and type, so that they can lie next to each other.
  if (places.tensors.size() == 1) return places;
  Value* common = places.tensors[0];
  for (Value* tensor : places.tensors)
    if (tensor != common) common = c.add("expand", {common, c.add("shape", {tensor})});
  Value* shape = c.add("shape", {common});
  for (Value*& tensor : places.tensors)
    tensor = c.cast(c.add("expand", {tensor, shape}), DType::kI64);
  return places;
}

Value* stacked(NodeBuilder& c, const Places& places) {
  return c.add("stack", places.tensors, {{"axis", c.rank(places.tensors[0])}});
}

Value* transposed(NodeBuilder& c, Value* x, const Ints& perm) {
  return std::is_sorted(perm.begin(), perm.end()) ? x : c.add("transpose", {x}, {{"perm", perm}});
}

Ints inverse(const Ints& perm) {
  Ints result(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) result[perm[i]] = static_cast<int64_t>(i);
  return result;
}

// The indexed axes first, then the others.
Ints indexed_first(const Places& places, int64_t rank) {
  Ints perm = places.axes;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!places.has(axis)) perm.push_back(axis);
  return perm;
}

// [axes of the indices…, other axes…] -> the order of the result: the indices' axes lie where the
// indexed ones were if those were next to each other, otherwise first.
Ints to_result(NodeBuilder& c, const Places& places, int64_t rank) {
  const int64_t indexed = c.rank(places.tensors[0]);
  Ints perm(static_cast<size_t>(indexed + rank) - places.axes.size());
  std::iota(perm.begin(), perm.end(), 0);
  if (places.adjacent())
    std::rotate(perm.begin(), perm.begin() + indexed, perm.begin() + indexed + places.axes.front());
  return perm;
}

// The shape of what take_at gives, as a vector of the graph.
Value* result_shape(NodeBuilder& c, Value* x, const Places& places) {
  Values parts;
  const auto others = [&](int64_t from, int64_t to) {
    for (int64_t axis = from; axis < to; ++axis)
      if (!places.has(axis))
        parts.push_back(c.add("shape", {x}, {{"start", axis}, {"end", axis + 1}}));
  };
  const int64_t before = places.adjacent() ? places.axes.front() : 0;
  others(0, before);
  parts.push_back(c.add("shape", {places.tensors[0]}));
  others(before, c.rank(x));
  return c.add("concat", parts, {{"axis", 0}});
}

bool is_single(const Value* values) {
  return values->type.ranked && std::all_of(values->shape().begin(), values->shape().end(),
                                            [](const Dim& extent) { return extent.is(1); });
}

}  // namespace

Value* take_at(NodeBuilder& c, Value* x, const Values& indices) {
  const Places places = places_of(c, x, indices);
  if (places.axes.size() == 1)
    return c.add("gather", {x, places.tensors[0]}, {{"axis", places.axes[0]}});
  const int64_t rank = c.rank(x);
  Value* y =
      c.add("gather_nd", {transposed(c, x, indexed_first(places, rank)), stacked(c, places)});
  return transposed(c, y, to_result(c, places, rank));
}

Value* put_at(NodeBuilder& c, Value* x, const Values& indices, Value* values, bool accumulate) {
  const Places places = places_of(c, x, indices);
  const int64_t rank = c.rank(x);
  values = c.cast(values, x->dtype());
  if (places.mask && !accumulate &&
      is_single(values)) {  // where does not matter: choose everywhere
    Ints after(rank - places.axes.back() - 1);
    std::iota(after.begin(), after.end(), c.rank(places.mask));
    Value* mask =
        after.empty() ? places.mask : c.add("unsqueeze", {places.mask}, {{"axes", after}});
    Value* number = c.add("reshape", {values, c.graph.ints({})});
    return c.add("where", {mask, number, x});
  }
  values = c.add("expand", {values, result_shape(c, x, places)});
  if (places.axes.size() == 1 && c.rank(places.tensors[0]) == 1 && !accumulate)
    return c.add("scatter", {values, places.tensors[0], x}, {{"axis", places.axes[0]}});
  const Ints first = indexed_first(places, rank);
  Value* updates = transposed(c, values, inverse(to_result(c, places, rank)));
  Value* y = c.add("scatter_nd", {updates, stacked(c, places), transposed(c, x, first)},
                   {{"mode", accumulate ? "add" : "set"}});
  return transposed(c, y, inverse(first));
}

}  // namespace anymps::executorch
