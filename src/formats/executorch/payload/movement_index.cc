// SPDX-License-Identifier: Apache-2.0
// Nodes that read or write at places that other tensors name.
#include "formats/executorch/operators/indexing.h"
#include "formats/executorch/payload/node_kinds.h"

namespace anymps::executorch {

namespace {

void IndexTensor(NodeCall& c) {
  using F = field::IndexTensor;
  c.out(F::kOutput, take_at(c, c.in(F::kInput), c.ins(F::kIndices)));
}

// values_shape is left alone: it says how another runtime broadcasts.
void IndexPut(NodeCall& c) {
  using F = field::IndexPut;
  c.out(F::kOutput, put_at(c, c.in(F::kInput), c.ins(F::kIndices), c.in(F::kValues), false));
}

void IndexSelect(NodeCall& c) {
  using F = field::IndexSelect;
  Value *x = c.in(F::kInput), *index = c.as_index(c.in(F::kIndex));
  if (c.rank(x) == 0) return c.out(F::kOutput, x);
  c.check(c.rank(index) <= 1, "the index has rank {}", c.rank(index));
  if (c.rank(index) == 0) index = c.reshaped(index, {1});
  const int64_t axis = c.normalize(c.i(F::kDim), c.rank(x));
  c.out(F::kOutput, c.add("gather", {x, index}, {{"axis", axis}}));
}

// The row of padding_idx is one like the others: only training treats it differently.
void Embedding(NodeCall& c) {
  using F = field::Binary;
  Value *weights = c.in(F::kInput1), *indices = c.in(F::kInput2);
  c.check(c.rank(weights) == 2, "the weights have rank {}, must have 2", c.rank(weights));
  c.out(F::kOutput, c.add("gather", {weights, c.as_index(indices)}, {{"axis", 0}}));
}

// src may be larger than the index: what lies outside is not read.
void Scatter(NodeCall& c) {
  using F = field::Scatter;
  Value *x = c.in(F::kInput), *index = c.as_index(c.in(F::kIndex));
  Value* source = c.as(c.in(F::kSource), x->dtype());
  const int64_t rank = c.rank(x), axis = c.normalize(c.l(F::kDim), rank);
  c.check(c.rank(index) == rank && c.rank(source) == rank,
          "the ranks of input, index and source are {}, {} and {}, must be equal", rank,
          c.rank(index), c.rank(source));
  if (source->shape() != index->shape())
    source = c.add("slice", {source, c.graph.ints(Ints(rank, 0)), c.add("shape", {index})});
  c.out(F::kOutput, c.add("scatter_along_axis", {source, index, x}, {{"axis", axis}}));
}

const NodeConverters kMpsIndex{
    {"MPSEmbedding", Embedding},     {"MPSIndexPut", IndexPut}, {"MPSIndexSelect", IndexSelect},
    {"MPSIndexTensor", IndexTensor}, {"MPSScatter", Scatter},
};

}  // namespace

}  // namespace anymps::executorch
