// SPDX-License-Identifier: Apache-2.0
// Nodes that read or write at places that other tensors name.
#include <algorithm>
#include <numeric>

#include "importers/executorch/node_kinds.h"

namespace anymps::executorch {

namespace {

// Tensors that index some axes of x, as in x[:, i, j]: they broadcast together, and axis axes[k] is
// looked up at tensors[k].
struct Places {
  Ints axes;
  Values tensors;
  Value* mask = nullptr;  // set when there is just a mask; it covers all of `axes`

  bool adjacent() const {
    return axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size());
  }
};

bool is_mask(const Value* index) {
  return index->dtype() == DType::kBool || index->dtype() == DType::kU8;
}

// A list with gaps: None leaves an axis alone; a mask stands for the places where it is true.
Places places_of(NodeCall& c, const Value* x) {
  Places places;
  int64_t axis = 0, given = 0;
  for (Value* index : c.ins(1, "indices_id")) {
    if (!index) {
      ++axis;
      continue;
    }
    ++given;
    const int64_t covers = is_mask(index) ? c.rank(index) : 1;
    c.check(axis + covers <= c.rank(x), "more axes are indexed than the input of rank {} has",
            c.rank(x));
    if (!is_mask(index)) {
      places.tensors.push_back(c.as_index(index));
    } else {
      c.check(covers > 0, "a mask of rank 0 is not supported");
      places.mask = c.as(index, DType::kBool);
      Value* found = c.add("nonzero", {places.mask});
      for (Value* row : c.add_all("split", {found}, {{"axis", 0}}, static_cast<size_t>(covers)))
        places.tensors.push_back(c.add("squeeze", {row}, {{"axes", Ints{0}}}));
    }
    for (int64_t k = 0; k < covers; ++k) places.axes.push_back(axis++);
  }
  c.check(given > 0, "indices_id names no index");
  if (given > 1) places.mask = nullptr;
  return places;
}

// All of one shape and i64, next to each other along a last axis.
Value* stacked(NodeCall& c, const Places& places) {
  Value* common = places.tensors[0];
  for (Value* tensor : places.tensors)
    if (tensor != common) common = c.add("expand", {common, c.add("shape", {tensor})});
  Values same;
  Value* shape = c.add("shape", {common});
  for (Value* tensor : places.tensors)
    same.push_back(c.cast(c.add("expand", {tensor, shape}), DType::kI64));
  return c.add("stack", same, {{"axis", c.rank(common)}});
}

bool is_sorted_from_0(const Ints& perm) {
  return perm.empty() || (perm[0] == 0 && std::is_sorted(perm.begin(), perm.end()));
}

Value* transposed(NodeCall& c, Value* x, const Ints& perm) {
  return is_sorted_from_0(perm) ? x : c.add("transpose", {x}, {{"perm", perm}});
}

Ints inverse(const Ints& perm) {
  Ints result(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    result[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return result;
}

// The indexed axes first, then the others.
Ints indexed_first(const Places& places, int64_t rank) {
  Ints perm = places.axes;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (std::find(places.axes.begin(), places.axes.end(), axis) == places.axes.end())
      perm.push_back(axis);
  return perm;
}

// [axes of the indices…, other axes…] -> the order of the result: the indices' axes lie where the
// indexed ones were if those were next to each other, otherwise first.
Ints to_result(const Places& places, int64_t index_rank, int64_t others) {
  Ints perm(static_cast<size_t>(index_rank + others));
  std::iota(perm.begin(), perm.end(), 0);
  if (places.adjacent())
    std::rotate(perm.begin(), perm.begin() + index_rank,
                perm.begin() + index_rank + places.axes.front());
  return perm;
}

void IndexTensor(NodeCall& c) {
  constexpr int kX = 0, kY = 2;
  Value* x = c.in(kX, "input1_id");
  const Places places = places_of(c, x);
  if (places.tensors.size() == 1)
    return c.out(kY, "output_id",
                 c.add("gather", {x, places.tensors[0]}, {{"axis", places.axes[0]}}));
  Value* indices = stacked(c, places);
  const int64_t others = c.rank(x) - static_cast<int64_t>(places.axes.size());
  Value* y = c.add("gather_nd", {transposed(c, x, indexed_first(places, c.rank(x))), indices});
  c.out(kY, "output_id", transposed(c, y, to_result(places, c.rank(indices) - 1, others)));
}

// The elements at the places become `values`, which broadcasts to what IndexTensor would give.
// values_shape is left alone: it says how another runtime broadcasts.
void IndexPut(NodeCall& c) {
  enum { kX, kIndices, kValuesShape, kValues, kY };
  Value* x = c.in(kX, "input1_id");
  const Places places = places_of(c, x);
  Value* values = c.as(c.in(kValues, "values_id"), x->dtype());
  const bool single = std::all_of(values->shape().begin(), values->shape().end(),
                                  [](const Dim& extent) { return extent.is(1); });
  const int64_t rank = c.rank(x);
  if (places.mask && single) {  // no need to know where: choose everywhere
    Ints after(static_cast<size_t>(rank - places.axes.back() - 1));
    std::iota(after.begin(), after.end(), c.rank(places.mask));
    Value* mask =
        after.empty() ? places.mask : c.add("unsqueeze", {places.mask}, {{"axes", after}});
    return c.out(kY, "output_id", c.add("where", {mask, c.reshaped(values, {}), x}));
  }
  if (places.tensors.size() == 1 && c.rank(places.tensors[0]) == 1) {
    Value* there = c.add("gather", {x, places.tensors[0]}, {{"axis", places.axes[0]}});
    Value* updates = c.add("expand", {values, c.add("shape", {there})});
    return c.out(kY, "output_id",
                 c.add("scatter", {updates, places.tensors[0], x}, {{"axis", places.axes[0]}}));
  }
  Value* indices = stacked(c, places);
  const Ints first = indexed_first(places, rank);
  const int64_t index_rank = c.rank(indices) - 1;
  const Ints order = to_result(places, index_rank, rank - static_cast<int64_t>(places.axes.size()));
  Value* data = transposed(c, x, first);
  Value* there = transposed(c, c.add("gather_nd", {data, indices}), order);
  Value* updates = c.add("expand", {values, c.add("shape", {there})});
  Value* y = c.add("scatter_nd", {transposed(c, updates, inverse(order)), indices, data});
  c.out(kY, "output_id", transposed(c, y, inverse(first)));
}

void IndexSelect(NodeCall& c) {
  enum { kX, kY, kDim, kIndex };
  Value *x = c.in(kX, "input1_id"), *index = c.as_index(c.in(kIndex, "index_id"));
  if (c.rank(x) == 0) return c.out(kY, "output_id", x);
  c.check(c.rank(index) <= 1, "the index has rank {}", c.rank(index));
  if (c.rank(index) == 0) index = c.reshaped(index, {1});
  const int64_t axis = c.normalize(c.i(kDim, "dim"), c.rank(x));
  c.out(kY, "output_id", c.add("gather", {x, index}, {{"axis", axis}}));
}

// The row of padding_idx is one like the others: only training treats it in a way of its own.
void Embedding(NodeCall& c) {
  enum { kWeights, kIndices, kY };
  Value *weights = c.in(kWeights, "input1_id"), *indices = c.in(kIndices, "input2_id");
  c.check(c.rank(weights) == 2, "the weights have rank {}, must have 2", c.rank(weights));
  c.out(kY, "output_id", c.add("gather", {weights, c.as_index(indices)}, {{"axis", 0}}));
}

// src may be larger than the index: what lies outside is not read.
void Scatter(NodeCall& c) {
  enum { kX, kY, kDim, kIndex, kSource };
  Value *x = c.in(kX, "input1_id"), *index = c.as_index(c.in(kIndex, "idx_id"));
  Value* source = c.as(c.in(kSource, "src_id"), x->dtype());
  const int64_t rank = c.rank(x), axis = c.normalize(c.l(kDim, "dim"), rank);
  c.check(c.rank(index) == rank && c.rank(source) == rank,
          "the ranks of input, index and source are {}, {} and {}, must be equal", rank,
          c.rank(index), c.rank(source));
  if (source->shape() != index->shape())
    source = c.add("slice", {source, c.graph.ints(Ints(static_cast<size_t>(rank), 0)),
                             c.add("shape", {index})});
  c.out(kY, "output_id", c.add("scatter_along_axis", {source, index, x}, {{"axis", axis}}));
}

const NodeConverter kTable[] = {
    {"MPSEmbedding", Embedding},     {"MPSIndexPut", IndexPut}, {"MPSIndexSelect", IndexSelect},
    {"MPSIndexTensor", IndexTensor}, {"MPSScatter", Scatter},
};

}  // namespace

std::span<const NodeConverter> mps_index_nodes() { return kTable; }

}  // namespace anymps::executorch
