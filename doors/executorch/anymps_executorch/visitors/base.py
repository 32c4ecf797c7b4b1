# SPDX-License-Identifier: Apache-2.0
"""What visitors have in common: reading arguments, adding nodes and values, casting."""

import torch
from executorch.backends.transforms import get_shape
from executorch.exir.sym_util import eval_expr

from ..upstream import mps_utils, node_visitor, schema

to_mps_dtype = mps_utils.edge_dtype_to_mps_dtype


def argument(node, index, name, default=None):
    """An argument of a node, wherever it stands; its default if it is missing."""
    if len(node.args) > index:
        return node.args[index]
    return node.kwargs.get(name, default)


def pair(value, default):
    """[h, w] of an argument that may be missing, empty, a number or a list of one."""
    if value is None or value == []:
        return list(default)
    value = [value] if isinstance(value, int) else [eval_expr(v) for v in value]
    return value * 2 if len(value) == 1 else value


def wrap(position, length):
    """A Python index that may count from the end, cut to [0, length]."""
    return max(position + length, 0) if position < 0 else min(position, length)


def value(dtype, dims):
    """An entry of the table of values, without elements."""
    return schema.MPSTensor(
        datatype=dtype, num_dims=len(dims), dims=dims, constant_buffer_size=0, constant_buffer=schema.Buffer(b"")
    )


def is_tensor(value):
    return isinstance(value, torch.fx.Node)


def dtype_of(node):
    return node.meta["val"].dtype


class Corrected(node_visitor.NodeVisitor):
    """What the visitors below have in common."""

    def stored_dtype(self, dtype):
        """The dtype that values of a torch dtype have in the delegate: float32 is float16 in a model of halves."""
        if self.convert_model_to_fp16 and dtype == torch.float32:
            dtype = torch.float16
        return to_mps_dtype(dtype)

    def fresh(self, dims, dtype, mps_graph):
        """The id of a new value that is no node of the edge graph."""
        mps_graph.mps_values.append(value(to_mps_dtype(dtype), dims))
        return len(mps_graph.mps_values) - 1

    def cast(self, id, dims, dtype, mps_graph):
        """The id of a new value that is value `id` in another dtype."""
        to = self.fresh(dims, dtype, mps_graph)
        mps_graph.mps_nodes.append(
            schema.MPSNode(mpsnode_union=schema.MPSCast(input1_id=id, output_id=to, dtype=self.stored_dtype(dtype)))
        )
        return to

    def operand(self, node, dtype, mps_graph):
        """The id of an operand, cast when the op's arithmetic is in another dtype."""
        id = self.define_tensor(node, mps_graph)
        return id if dtype_of(node) == dtype else self.cast(id, get_shape(node), dtype, mps_graph)

    def add(self, mps_graph, kind, **fields):
        mps_graph.mps_nodes.append(schema.MPSNode(mpsnode_union=kind(**fields)))
