# SPDX-License-Identifier: Apache-2.0
"""What the wheel gets wrong when it writes values and constants, put right: one function a mistake.

`apply` patches the wheel's NodeVisitor, from which all visitors of ops inherit. Constants are told apart by all that
makes them different, and every delegate numbers its values from zero.
"""

import functools
import re

import torch
from executorch.exir.sym_util import eval_shape_upper_bound
from torch._export.utils import get_lifted_tensor_constant, is_lifted_tensor_constant

from .upstream import MPSBackend, mps_utils, node_visitor, schema

NodeVisitor = node_visitor.NodeVisitor
DataType = schema.MPSDataType

TORCH_DTYPES = {
    DataType.mps_data_type_float16: torch.float16,
    DataType.mps_data_type_float32: torch.float32,
    DataType.mps_data_type_bfloat16: torch.bfloat16,
    DataType.mps_data_type_int8: torch.int8,
    DataType.mps_data_type_int16: torch.int16,
    DataType.mps_data_type_int32: torch.int32,
    DataType.mps_data_type_int64: torch.int64,
    DataType.mps_data_type_uint8: torch.uint8,
    DataType.mps_data_type_bool: torch.bool,
}


def tensor_bytes(tensor):
    """The elements of a tensor, row by row, and nothing else of its storage."""
    tensor = tensor.detach().cpu().contiguous()
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def json_float(value):
    """A float as flatc's JSON takes it: infinities and NaN are strings there."""
    value = float(value)
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value


def as_halves(tensor):
    """In float16; what is finite stays so, as masks of the lowest float32 must."""
    limit = torch.finfo(torch.float16).max
    return torch.where(tensor.isinf(), tensor, tensor.clamp(-limit, limit)).to(torch.float16)


def pack_int4(tensor):
    """Two elements in a byte, the first in the low half: what torch's packing for MPS gives for these weights."""
    if tensor.dim() != 2 or tensor.shape[1] % 2:
        raise RuntimeError(f"int4 weights must be a matrix with an even number of columns, not {list(tensor.shape)}")
    bits = tensor.to(torch.int32) & 0xF
    return (bits[:, ::2] | (bits[:, 1::2] << 4)).to(torch.uint8)


def ids_of_one_delegate():
    """Upstream keeps the ids in a dict of the class and never clears it: in a second delegate of the same process,
    constants that were seen before get ids of the first one."""
    preprocess = MPSBackend.preprocess

    @functools.wraps(preprocess)
    def clean(edge_program, compile_specs):
        NodeVisitor._tensor_to_id.clear()
        try:
            return preprocess(edge_program, compile_specs)
        finally:
            NodeVisitor._tensor_to_id.clear()

    MPSBackend.preprocess = staticmethod(clean)


def label(kind):
    """MPSConv2D -> conv2d, MPSBatchNorm -> batch_norm: how the engine names nodes."""
    return re.sub(r"(?<=.)(?=[A-Z][a-z])", "_", kind.removeprefix("MPS")).lower()


def nodes_lead_back_to_the_module():
    """Upstream keeps no note of what a node was made of, so that no profile can be linked with the module. The result of
    a delegate gets a map from its nodes, under the names that the engine gives them, to debug handles."""
    handle, preprocess = MPSBackend.handle_call_function, MPSBackend.preprocess
    handles = {}

    def noting(edge_program, node_visitors, node, mps_graph):
        first = len(mps_graph.mps_nodes)
        handle(edge_program, node_visitors, node, mps_graph)
        found = node.meta.get("debug_handle")
        for number, made in enumerate(mps_graph.mps_nodes[first:], first):
            if found is not None:
                handles[f"{label(type(made.mpsnode_union).__name__)}_{number}"] = (found,)

    @functools.wraps(preprocess)
    def mapped(edge_program, compile_specs):
        handles.clear()
        result = preprocess(edge_program, compile_specs)
        result.debug_handle_map = dict(handles)
        return result

    MPSBackend.handle_call_function = staticmethod(noting)
    MPSBackend.preprocess = staticmethod(mapped)


def lifted_constants_are_constants():
    """Upstream knows parameters and buffers only: a tensor made in forward() becomes an input that nobody feeds."""
    known, tensor_of = mps_utils.is_parameter, mps_utils.get_param_tensor

    def is_parameter(exp_prog, node):
        return known(exp_prog, node) or is_lifted_tensor_constant(exp_prog, node)

    def get_param_tensor(exp_prog, node):
        if node is not None and is_lifted_tensor_constant(exp_prog, node):
            return get_lifted_tensor_constant(exp_prog, node)
        return tensor_of(exp_prog, node)

    for module in (mps_utils, node_visitor):
        module.is_parameter = is_parameter
        module.get_param_tensor = get_param_tensor


def constants_hold_their_own_elements():
    """Upstream writes the whole storage from its start: a constant that is a slice of another tensor gets wrong
    elements. It packs int4 weights with a function that exists on Apple's machines alone, halves what is float32 by
    name though its elements may be of another type, and makes infinities of numbers that halves do not reach."""

    def get_serialized_data(self, tensor, mps_graph, mps_data_type, id):
        if self.convert_model_to_fp16 and mps_data_type == DataType.mps_data_type_float32:
            mps_data_type = DataType.mps_data_type_float16
        if id not in mps_graph.constant_ids:
            mps_graph.constant_ids.append(id)
        if mps_data_type == DataType.mps_data_type_int4:
            tensor = pack_int4(tensor)
        elif mps_data_type == DataType.mps_data_type_float16:
            tensor = as_halves(tensor)
        else:
            tensor = tensor.to(TORCH_DTYPES[mps_data_type])
        data = tensor_bytes(tensor)
        return len(data), schema.Buffer(storage=data), mps_data_type

    NodeVisitor.get_serialized_data = get_serialized_data


def scalars_have_a_dtype():
    """Upstream keys scalars by value alone, so that 2 and 2.0 share one constant, and writes an int32's scalar with
    the eight bytes of torch's default."""

    def define_scalar(self, val, mps_data_type, mps_graph):
        if isinstance(val, float) and not TORCH_DTYPES[mps_data_type].is_floating_point:
            mps_data_type = DataType.mps_data_type_float32  # an integer tensor with a float scalar makes floats
        return self.define_constant(torch.tensor([val], dtype=TORCH_DTYPES[mps_data_type]), mps_graph)

    NodeVisitor.define_scalar = define_scalar


def constants_differ_in_shape_and_dtype():
    """Upstream keys constants by a hash of their elements: [[0, 1]] and [0, 1] become one constant, and so do two
    tensors whose hashes happen to be equal."""

    def define_constant(self, constant_tensor, mps_graph):
        data = tensor_bytes(constant_tensor)
        key = (data, tuple(constant_tensor.shape), constant_tensor.dtype)
        if key in self.tensor_to_id:
            return self.tensor_to_id[key]
        id = self.get_serialized_id(constant_tensor, mps_graph, key)
        dtype = mps_utils.edge_dtype_to_mps_dtype(constant_tensor.dtype)
        size, buffer, dtype = self.get_serialized_data(constant_tensor, mps_graph, dtype, id)
        dims = list(constant_tensor.shape)
        mps_graph.mps_values.append(
            schema.MPSTensor(
                datatype=dtype, num_dims=len(dims), dims=dims, constant_buffer_size=size, constant_buffer=buffer
            )
        )
        return id

    NodeVisitor.define_constant = define_constant


def no_value_is_none():
    """Upstream takes `val` of an unused mean or index as it is, and fails on outputs that are None."""
    define_tensor = NodeVisitor.define_tensor

    def define(self, node, mps_graph, mps_data_type=None):
        if isinstance(node, torch.fx.Node) and node.meta.get("val") is None and node not in self.tensor_to_id:
            return -1
        return define_tensor(self, node, mps_graph, mps_data_type)

    NodeVisitor.define_tensor = define


def lists_have_their_largest_shapes():
    """Upstream declares the largest shape of every value but those of a list (a normalization's, a pooling's with
    indices, a chunk's): these get the shape of the example."""
    node_visitor.eval_shape = eval_shape_upper_bound


FIXES = (
    ids_of_one_delegate,
    nodes_lead_back_to_the_module,
    lifted_constants_are_constants,
    constants_hold_their_own_elements,
    scalars_have_a_dtype,
    constants_differ_in_shape_and_dtype,
    no_value_is_none,
    lists_have_their_largest_shapes,
)


@functools.cache
def apply():
    for fix in FIXES:
        fix()
