# SPDX-License-Identifier: Apache-2.0
"""Shapes, parts and indices. Each docstring says what is wrong upstream."""

import torch
from executorch.backends.transforms import get_shape
from executorch.exir.sym_util import eval_expr, eval_shape

from ..serialization import json_float
from ..upstream import edge, schema
from .base import Corrected, argument, dtype_of, wrap


class Pad(Corrected):
    """Upstream fails when the value is left at its default."""

    def define_node(self, node, mps_graph):
        mps_node = self.create_unary_node(node, mps_graph, schema.MPSConstantPadND)
        mps_node.mpsnode_union.pad = eval_shape(node.args[1])
        mps_node.mpsnode_union.value = json_float(argument(node, 2, "value", 0))
        mps_graph.mps_nodes.append(mps_node)


def slice_bounds(node, first, length):
    """(start, end, step) of slice arguments from position `first` on."""
    start, end = argument(node, first, "start"), argument(node, first + 1, "end")
    start = 0 if start is None else wrap(eval_expr(start), length)
    end = length if end is None else wrap(eval_expr(end), length)
    return start, max(start, end), argument(node, first + 2, "step", 1)


class Slice(Corrected):
    """Upstream forgets the start when no end is given."""

    def define_node(self, node, mps_graph):
        shape = get_shape(node.args[0])
        dim = argument(node, 1, "dim", 0) % len(shape)
        start, end, step = slice_bounds(node, 2, shape[dim])
        mps_node = self.create_unary_node(node, mps_graph, schema.MPSSlice)
        fields = mps_node.mpsnode_union
        fields.dim, fields.start, fields.end, fields.step = dim, start, end, step
        mps_graph.mps_nodes.append(mps_node)


class SliceScatter(Corrected):
    """Upstream neither counts a start or an end from the back nor cuts them to the extent, and so writes indices that
    lie outside."""

    def define_node(self, node, mps_graph):
        shape = get_shape(node.args[0])
        dim = argument(node, 2, "dim", 0) % len(shape)
        index = torch.arange(*slice_bounds(node, 3, shape[dim]))
        around = [1] * len(shape)
        around[dim] = len(index)
        full = [*shape[:dim], len(index), *shape[dim + 1 :]]
        mps_node = self.create_unary_node(node, mps_graph, schema.MPSScatter)
        mps_node.mpsnode_union.dim = dim
        mps_node.mpsnode_union.src_id = self.define_tensor(node.args[1], mps_graph)
        mps_node.mpsnode_union.idx_id = self.define_constant(index.view(around).expand(full), mps_graph)
        mps_graph.mps_nodes.append(mps_node)


class Split(Corrected):
    """Upstream fails when the dim is left at its default."""

    def define_node(self, node, mps_graph):
        self.add(
            mps_graph,
            schema.MPSSplitWithSizes,
            input1_id=self.define_tensor(node.args[0], mps_graph),
            output_ids=self.define_tensor_list(node, mps_graph),
            split_sizes=eval_shape(node.args[1]),
            dim=argument(node, 2, "dim", 0) % len(get_shape(node.args[0])),
        )


class Cat(Corrected):
    """Upstream joins tensors of different dtypes as they are, and those without elements too."""

    def define_node(self, node, mps_graph):
        parts = [t for t in node.args[0] if get_shape(t) != [0]] or list(node.args[0][:1])
        ids = [self.operand(t, dtype_of(node), mps_graph) for t in parts]
        self.add(
            mps_graph,
            schema.MPSCat,
            input_ids=ids,
            output_id=self.define_tensor(node, mps_graph),
            dim=argument(node, 1, "dim", 0) % max(len(get_shape(parts[0])), 1),
        )


class ViewExpand(Corrected):
    """Upstream writes the shape as it stands in the call, symbols and all. An extent that only running can tell is -1
    here: the one that is open in a view, the source's own in an expansion."""

    def define_node(self, node, mps_graph):
        kind = schema.MPSView if node.target == edge.view_copy.default else schema.MPSExpand
        mps_node = self.create_unary_node(node, mps_graph, kind)
        shape = [s if isinstance(s, int) else -1 for s in node.args[1]]
        mps_node.mpsnode_union.num_dims = len(shape)
        mps_node.mpsnode_union.shape = shape
        mps_graph.mps_nodes.append(mps_node)


class Squeeze(Corrected):
    """Upstream knows squeeze_copy.dims alone."""

    def define_node(self, node, mps_graph):
        shape = get_shape(node.args[0])
        dims = node.args[1] if isinstance(node.args[1], (list, tuple)) else [node.args[1]]
        mps_node = self.create_unary_node(node, mps_graph, schema.MPSSqueeze)
        mps_node.mpsnode_union.dims = [d for d in dims if shape and shape[d] == 1]
        mps_graph.mps_nodes.append(mps_node)


class IndexPut(Corrected):
    """Upstream widens the values to a shape made of the input's, which fits one index alone."""

    def define_node(self, node, mps_graph):
        source, indices, values = node.args[:3]
        mps_node = self.create_unary_node(node, mps_graph, schema.MPSIndexPut)
        fields = mps_node.mpsnode_union
        fields.indices_id = [self.define_tensor(i, mps_graph) for i in indices]
        fields.values_id = self.operand(values, dtype_of(source), mps_graph)
        target = list(torch.empty(get_shape(source), device="meta")[index_shapes(indices)].shape)
        fields.values_shape = [] if target == get_shape(values) else target
        mps_graph.mps_nodes.append(mps_node)


def index_shapes(indices):
    """Indices without elements, with which torch tells the shape of what they select."""
    return tuple(
        slice(None) if i is None else torch.empty(get_shape(i), dtype=torch.int64, device="meta") for i in indices
    )


class IndexTensor(Corrected):
    """As upstream's, with indices that are None at any place."""

    def define_node(self, node, mps_graph):
        mps_node = self.create_unary_node(node, mps_graph, schema.MPSIndexTensor)
        mps_node.mpsnode_union.indices_id = [self.define_tensor(i, mps_graph) for i in node.args[1]]
        mps_graph.mps_nodes.append(mps_node)


class Embedding(Corrected):
    """Upstream's runtime makes zeros of the rows of padding_idx, which torch does in training only: it is not
    written."""

    def define_node(self, node, mps_graph):
        mps_graph.mps_nodes.append(self.create_binary_node(node, mps_graph, schema.MPSEmbedding))


VISITORS = (
    (Pad, (edge.constant_pad_nd.default,)),
    (Slice, (edge.slice_copy.Tensor,)),
    (SliceScatter, (edge.slice_scatter.default,)),
    (Split, (edge.split_with_sizes_copy.default,)),
    (Cat, (edge.cat.default,)),
    (ViewExpand, (edge.view_copy.default, edge.expand_copy.default)),
    (Squeeze, (edge.squeeze_copy.dims, edge.squeeze_copy.dim)),
    (IndexPut, (edge.index_put.default,)),
    (IndexTensor, (edge.index.Tensor,)),
    (Embedding, (edge.embedding.default,)),
)
