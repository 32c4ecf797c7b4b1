// SPDX-License-Identifier: Apache-2.0
// Nodes that read or write at places that other tensors name.
#include "formats/executorch/operators/indexing.h"
#include "formats/executorch/payload/node_kinds.h"

namespace anymps::executorch {

namespace {

void IndexTensor(NodeCall& c) {
  enum { kX, kIndices, kY };
  c.out(kY, "output_id", take_at(c, c.in(kX, "input1_id"), c.ins(kIndices, "indices_id")));
}

// values_shape is left alone: it says how another runtime broadcasts.
void IndexPut(NodeCall& c) {
  enum { kX, kIndices, kValuesShape, kValues, kY };
  c.out(kY, "output_id",
        put_at(c, c.in(kX, "input1_id"), c.ins(kIndices, "indices_id"), c.in(kValues, "values_id"),
               false));
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

// The row of padding_idx is one like the others: only training treats it differently.
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

const NodeConverters kMpsIndex{
    {"MPSEmbedding", Embedding},     {"MPSIndexPut", IndexPut}, {"MPSIndexSelect", IndexSelect},
    {"MPSIndexTensor", IndexTensor}, {"MPSScatter", Scatter},
};

}  // namespace

}  // namespace anymps::executorch
