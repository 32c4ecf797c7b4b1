# SPDX-License-Identifier: Apache-2.0
"""Visitors of ops that the wheel writes wrongly or not at all: each docstring says what is wrong upstream.

A visitor turns one node of the edge graph into nodes of the MPS schema. These are registered over the wheel's own;
what none of them can express is refused before (support.py), with the reason in the report.
"""
import functools
import math

import torch
from executorch.backends.transforms import get_shape
from executorch.exir.sym_util import eval_expr, eval_shape

from . import upstream
from .serialization import DataType, as_halves, json_float
from .upstream import edge, mps_utils, node_visitor, schema

REGISTRY = node_visitor._node_visitor_dict
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


def common_dtype(node):
    """The dtype in which torch computes a node of several operands."""
    operands = [a.meta["val"] if is_tensor(a) else a for a in node.args[:2]]
    dtype = torch.result_type(*operands)
    floats = (edge.div.Tensor, edge.atan2.default)
    if node.target in floats and not dtype.is_floating_point:
        return torch.get_default_dtype()
    return dtype


class Binary(Corrected):
    """Upstream leaves operands in the dtypes that they have, so that int / int has no float to be, and writes
    floor_divide as a division without rounding."""

    kinds = {
        edge.add.Tensor: schema.MPSAdd,
        edge.add.Scalar: schema.MPSAdd,
        edge.sub.Tensor: schema.MPSSub,
        edge.sub.Scalar: schema.MPSSub,
        edge.mul.Tensor: schema.MPSMul,
        edge.mul.Scalar: schema.MPSMul,
        edge.div.Tensor: schema.MPSDiv,
        edge.div.Tensor_mode: schema.MPSDiv,
        edge.floor_divide.default: schema.MPSDiv,
        edge.fmod.Tensor: schema.MPSFmod,
        edge.fmod.Scalar: schema.MPSFmod,
        edge.remainder.Tensor: schema.MPSRemainder,
        edge.remainder.Scalar: schema.MPSRemainder,
        edge.pow.Tensor_Tensor: schema.MPSPow,
        edge.pow.Tensor_Scalar: schema.MPSPow,
        edge.atan2.default: schema.MPSAtan2,
        edge.minimum.default: schema.MPSMinimum,
        edge.maximum.default: schema.MPSMax,
        edge.bitwise_and.Tensor: schema.MPSBitwiseAnd,
        edge.bitwise_and.Scalar: schema.MPSBitwiseAnd,
        edge.bitwise_or.Tensor: schema.MPSBitwiseOr,
        edge.bitwise_or.Scalar: schema.MPSBitwiseOr,
        edge.bitwise_xor.Tensor: schema.MPSBitwiseXor,
        edge.bitwise_xor.Scalar: schema.MPSBitwiseXor,
        edge.logical_and.default: schema.MPSBitwiseAnd,
        edge.logical_or.default: schema.MPSBitwiseOr,
        edge.logical_xor.default: schema.MPSBitwiseXor,
        edge.eq.Tensor: schema.MPSEq,
        edge.eq.Scalar: schema.MPSEq,
        edge.ne.Tensor: schema.MPSNe,
        edge.ne.Scalar: schema.MPSNe,
        edge.ge.Tensor: schema.MPSGe,
        edge.ge.Scalar: schema.MPSGe,
        edge.gt.Tensor: schema.MPSGt,
        edge.gt.Scalar: schema.MPSGt,
        edge.le.Tensor: schema.MPSLe,
        edge.le.Scalar: schema.MPSLe,
        edge.lt.Tensor: schema.MPSLt,
        edge.lt.Scalar: schema.MPSLt,
    }
    logical = (edge.logical_and.default, edge.logical_or.default, edge.logical_xor.default)

    def define_node(self, node, mps_graph):
        dtype = torch.bool if node.target in self.logical else common_dtype(node)
        first, second = (self.side(a, dtype, mps_graph) for a in node.args[:2])
        fields = {"input1_id": first, "input2_id": second, "output_id": self.define_tensor(node, mps_graph)}
        if node.target in (edge.add.Tensor, edge.add.Scalar, edge.sub.Tensor, edge.sub.Scalar):
            fields["alpha"] = float(argument(node, 2, "alpha", 1))
        if node.target == edge.floor_divide.default:
            fields["rounding_mode"] = "floor"
        elif node.kwargs.get("rounding_mode"):
            fields["rounding_mode"] = node.kwargs["rounding_mode"]
        self.add(mps_graph, self.kinds[node.target], **fields)

    def side(self, operand, dtype, mps_graph):
        if is_tensor(operand):
            return self.operand(operand, dtype, mps_graph)
        return self.define_constant(torch.tensor([operand], dtype=dtype), mps_graph)


UPSTREAM_UNARY = REGISTRY["aten.sqrt.default"]  # the wheel's decorator leaves no class under the class's name


class Unary(UPSTREAM_UNARY, Corrected):
    """Upstream hands integers to functions that make floats of them (sqrt, sin, ...)."""

    def define_node(self, node, mps_graph):
        source = node.args[0]
        if dtype_of(node).is_floating_point and dtype_of(source) != dtype_of(node):
            id = self.operand(source, dtype_of(node), mps_graph)
            self.add(
                mps_graph, self.unary_op[node.target], input1_id=id, output_id=self.define_tensor(node, mps_graph)
            )
        else:
            super().define_node(node, mps_graph)


class HardTanh(Corrected):
    """Upstream fails when the bounds are left at their defaults."""

    def define_node(self, node, mps_graph):
        mps_node = self.create_unary_node(node, mps_graph, schema.MPSHardTanh)
        mps_node.mpsnode_union.min_value = json_float(argument(node, 1, "min_val", -1))
        mps_node.mpsnode_union.max_value = json_float(argument(node, 2, "max_val", 1))
        mps_graph.mps_nodes.append(mps_node)


class Clamp(Corrected):
    """Upstream writes a bound of infinity as JSON that flatc does not read."""

    def define_node(self, node, mps_graph):
        low, high = argument(node, 1, "min"), argument(node, 2, "max")
        source = self.operand(node.args[0], dtype_of(node), mps_graph)
        mps_graph.mps_nodes.append(
            schema.MPSNode(
                mpsnode_union=schema.MPSClamp(input1_id=source, output_id=self.define_tensor(node, mps_graph)),
                min_max=schema.MPSMinMax(
                    min_value=json_float(float("-inf") if low is None else low),
                    max_value=json_float(float("inf") if high is None else high),
                ),
            )
        )


class Where(Corrected):
    """Upstream leaves the two sides in the dtypes that they have."""

    def define_node(self, node, mps_graph):
        dtype = dtype_of(node)
        self.add(
            mps_graph,
            schema.MPSWhere,
            input1_id=self.operand(node.args[0], torch.bool, mps_graph),
            input2_id=self.operand(node.args[1], dtype, mps_graph),
            input3_id=self.operand(node.args[2], dtype, mps_graph),
            output_id=self.define_tensor(node, mps_graph),
        )


class Full(Corrected):
    """Upstream writes float32 unless the call names another dtype, also where torch makes integers and in a model of
    halves; full_like fails on an infinite value."""

    def define_node(self, node, mps_graph):
        value = 0
        if node.target == edge.scalar_tensor.default:
            value = node.args[0]
        elif node.target != edge.empty.memory_format:
            value = node.args[1]
        dtype = self.stored_dtype(dtype_of(node))
        if dtype == DataType.mps_data_type_float16:
            value = float(as_halves(torch.tensor(float(value))))
        fields = {"fill_value": json_float(value), "dtype": dtype}
        if node.target == edge.full_like.default:
            source = self.define_tensor(node.args[0], mps_graph)
            output = self.define_tensor(node, mps_graph)
            self.add(mps_graph, schema.MPSFullLike, input1_id=source, output_id=output, **fields)
        else:
            output = self.define_tensor(node, mps_graph)
            self.add(mps_graph, schema.MPSFull, output_id=output, shape=get_shape(node), **fields)


class Arange(Corrected):
    """Upstream writes float32 in a model of halves."""

    def define_node(self, node, mps_graph):
                self.add(
            mps_graph,
            schema.MPSArange,
            output_id=self.define_tensor(node, mps_graph),
            start=float(node.args[0]),
            end=float(node.args[1]),
            step=float(argument(node, 2, "step", 1)),
            dtype=self.stored_dtype(dtype_of(node)),
        )


class Copy(Corrected):
    """Upstream drops the dtype of _to_copy: the copy stays what its source is. A constant is converted here and now."""

    def define_node(self, node, mps_graph):
        source = node.args[0]
        if dtype_of(source) != dtype_of(node) and mps_utils.is_parameter(self.exported_program, source):
            tensor = mps_utils.get_param_tensor(self.exported_program, source).to(dtype_of(node))
            self.tensor_to_id[node] = self.define_constant(tensor, mps_graph)
            return
        id = self.define_tensor(source, mps_graph)
        if dtype_of(source) == dtype_of(node):
            self.tensor_to_id[node] = id
        else:
            self.tensor_to_id[node] = self.cast(id, get_shape(node), dtype_of(node), mps_graph)


class Addmm(Corrected):
    """Upstream looks for beta and alpha among the positional arguments, where they never are, and takes one of them."""

    def define_node(self, node, mps_graph):
        mps_node = self.create_tertiary_node(node, mps_graph, schema.MPSAddmm)
        mps_node.mpsnode_union.beta = float(argument(node, 3, "beta", 1))
        mps_node.mpsnode_union.alpha = float(argument(node, 4, "alpha", 1))
        mps_graph.mps_nodes.append(mps_node)


def pooling_window(node):
    kernel = pair(node.args[1], ())
    stride = pair(argument(node, 2, "stride"), kernel)
    padding = pair(argument(node, 3, "padding"), (0, 0))
    return {
        "kernel_height": kernel[0],
        "kernel_width": kernel[1],
        "stride_height": stride[0],
        "stride_width": stride[1],
        "padding_top": padding[0],
        "padding_bottom": padding[0],
        "padding_left": padding[1],
        "padding_right": padding[1],
    }


class MaxPool(Corrected):
    """Upstream fails without a stride, and pads the end by padding * stride when ceil_mode is set."""

    def define_node(self, node, mps_graph):
        source = self.define_tensor(node.args[0], mps_graph)
        dilation = pair(argument(node, 4, "dilation"), (1, 1))
        first, second = self.define_tensor_list(node, mps_graph)
        self.add(
            mps_graph,
            schema.MPSMaxPool2DWithIndices,
            input1_id=source,
            output1_id=first,
            output2_id=second,
            dilation_height=dilation[0],
            dilation_width=dilation[1],
            ceil_mode=bool(argument(node, 5, "ceil_mode", False)),
            **pooling_window(node),
        )


class AvgPool(Corrected):
    """Upstream reads count_include_pad only when it is the last argument, so that a divisor loses it, and fails on
    what MaxPool fails on."""

    def define_node(self, node, mps_graph):
        source = self.define_tensor(node.args[0], mps_graph)
        self.add(
            mps_graph,
            schema.MPSAvgPool2D,
            input1_id=source,
            output1_id=self.define_tensor(node, mps_graph),
            dilation_height=1,
            dilation_width=1,
            ceil_mode=bool(argument(node, 4, "ceil_mode", False)),
            count_include_pad=bool(argument(node, 5, "count_include_pad", True)),
            divisor_override=argument(node, 6, "divisor_override") or 0,
            **pooling_window(node),
        )


class Mean(Corrected):
    """Upstream misses keepdim by name, all dims as an empty list or as mean.default, and the dtype."""

    def define_node(self, node, mps_graph):
        source = self.operand(node.args[0], dtype_of(node), mps_graph)
        every = list(range(len(get_shape(node.args[0]))))
        whole = node.target == edge.mean.default
        dims = every if whole else list(argument(node, 1, "dim") or every)
        self.add(
            mps_graph,
            schema.MPSMean,
            input1_id=source,
            output_id=self.define_tensor(node, mps_graph),
            num_dims=len(dims),
            dims=dims,
            keep_dims=not whole and bool(argument(node, 2, "keepdim", False)),
        )


class Sum(Corrected):
    """Not upstream's: a sum is the mean times the number of elements, for floats."""

    def define_node(self, node, mps_graph):
        shape, dtype = get_shape(node.args[0]), dtype_of(node)
        dims = list(argument(node, 1, "dim") or range(len(shape)))
        count = math.prod(shape[d] for d in dims)
        source = self.operand(node.args[0], dtype, mps_graph)
        mean = self.fresh(get_shape(node), dtype, mps_graph)
        keep = bool(argument(node, 2, "keepdim", False))
        self.add(
            mps_graph, schema.MPSMean, input1_id=source, output_id=mean, num_dims=len(dims), dims=dims, keep_dims=keep
        )
        factor = self.define_constant(torch.tensor([count], dtype=dtype), mps_graph)
        output = self.define_tensor(node, mps_graph)
        self.add(mps_graph, schema.MPSMul, input1_id=mean, input2_id=factor, output_id=output)


class Any(Corrected):
    """Not upstream's: some element is true when the mean of ones and zeros is not zero."""

    def define_node(self, node, mps_graph):
        source = self.operand(node.args[0], torch.bool, mps_graph)
        ones = self.cast(source, get_shape(node.args[0]), torch.float32, mps_graph)
        mean = self.fresh(get_shape(node), torch.float32, mps_graph)
        dims, keep = [node.args[1]], bool(argument(node, 2, "keepdim", False))
        self.add(mps_graph, schema.MPSMean, input1_id=ones, output_id=mean, num_dims=1, dims=dims, keep_dims=keep)
        zero = self.define_constant(torch.zeros(1), mps_graph)
        output = self.define_tensor(node, mps_graph)
        self.add(mps_graph, schema.MPSNe, input1_id=mean, input2_id=zero, output_id=output)


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
        source = self.define_tensor(node.args[0], mps_graph)
        self.add(
            mps_graph,
            schema.MPSSplitWithSizes,
            input1_id=source,
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


class DequantizeGroup(Corrected):
    """Upstream wants all eight arguments in their places, and takes any weights for int4 without zero points. Others
    are written out here: (weights - zero points) * scales, group by group."""

    def define_node(self, node, mps_graph):
        if self.is_int4(node):
            self.define_int4(node, mps_graph)
        else:
            self.define_wide(node, mps_graph)

    def is_int4(self, node):
        weights, zeros = node.args[0], node.args[2]
        constant = mps_utils.is_parameter(self.exported_program, weights)
        if zeros is not None:
            known = mps_utils.is_parameter(self.exported_program, zeros)
            if not known or mps_utils.get_param_tensor(self.exported_program, zeros).any():
                return False
        return constant and tuple(node.args[3:5]) == (-8, 7) and get_shape(weights)[1] % 2 == 0

    def define_wide(self, node, mps_graph):
        weights, scales, zeros = node.args[:3]
        rows, columns = get_shape(weights)
        groups, dtype = get_shape(scales)[1], dtype_of(node)
        full, narrow = [rows, groups, columns // groups], [rows, groups, 1]
        x = self.reshape(self.operand(weights, dtype, mps_graph), full, dtype, mps_graph)
        if zeros is not None:
            zeros = self.reshape(self.operand(zeros, dtype, mps_graph), narrow, dtype, mps_graph)
            x = self.compute(schema.MPSSub, x, zeros, full, dtype, mps_graph)
        scales = self.reshape(self.operand(scales, dtype, mps_graph), narrow, dtype, mps_graph)
        x = self.compute(schema.MPSMul, x, scales, full, dtype, mps_graph)
        self.tensor_to_id[node] = self.reshape(x, [rows, columns], dtype, mps_graph)

    def reshape(self, id, shape, dtype, mps_graph):
        to = self.fresh(shape, dtype, mps_graph)
        self.add(mps_graph, schema.MPSView, input1_id=id, output_id=to, num_dims=len(shape), shape=shape)
        return to

    def compute(self, kind, first, second, shape, dtype, mps_graph):
        to = self.fresh(shape, dtype, mps_graph)
        self.add(mps_graph, kind, input1_id=first, input2_id=second, output_id=to)
        return to

    def define_int4(self, node, mps_graph):
        output = self.define_tensor(node, mps_graph)
        weights = self.define_tensor(node.args[0], mps_graph, DataType.mps_data_type_int4)
        self.add(
            mps_graph,
            schema.MPSDequantizePerChannelGroup,
            input1_id=weights,
            output_id=output,
            scales_id=self.define_tensor(node.args[1], mps_graph),
            zero_points_id=-1,
            quant_min=node.args[3],
            quant_max=node.args[4],
            dtype=to_mps_dtype(dtype_of(node.args[0])),
            group_size=argument(node, 6, "group_size"),
            output_dtype=self.stored_dtype(dtype_of(node)),
        )


CORRECTED = (
    (Binary, tuple(Binary.kinds)),
    (HardTanh, (edge.hardtanh.default,)),
    (Clamp, (edge.clamp.default,)),
    (Where, (edge.where.self,)),
    (Full, (edge.full.default, edge.full_like.default, edge.scalar_tensor.default, edge.empty.memory_format)),
    (Arange, (edge.arange.start_step,)),
    (Copy, (edge._to_copy.default, edge.clone.default, edge.alias_copy.default)),
    (Addmm, (edge.addmm.default,)),
    (MaxPool, (edge.max_pool2d_with_indices.default,)),
    (AvgPool, (edge.avg_pool2d.default,)),
    (Mean, (edge.mean.dim, edge.mean.default)),
    (Sum, (edge.sum.dim_IntList,)),
    (Any, (edge.any.dim,)),
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
    (DequantizeGroup, (upstream.exir_ops.edge.quantized_decomposed.dequantize_per_channel_group.default,)),
)


@functools.cache
def apply():
    for visitor, targets in CORRECTED:
        for target in targets:
            REGISTRY[target.__name__] = visitor
    for target in UPSTREAM_UNARY.target:
        REGISTRY[target] = Unary
