# SPDX-License-Identifier: Apache-2.0
"""Constants, ranges, copies, and weights in groups. Each docstring says what is wrong upstream."""

import torch
from executorch.backends.transforms import get_shape

from ..serialization import DataType, as_halves, json_float
from ..upstream import edge, exir_ops, mps_utils, schema
from .base import Corrected, argument, dtype_of, to_mps_dtype


class Full(Corrected):
    """Upstream writes float32 unless the call names another dtype, even where torch makes integers and in a model of
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


VISITORS = (
    (Full, (edge.full.default, edge.full_like.default, edge.scalar_tensor.default, edge.empty.memory_format)),
    (Arange, (edge.arange.start_step,)),
    (Copy, (edge._to_copy.default, edge.clone.default, edge.alias_copy.default)),
    (DequantizeGroup, (exir_ops.edge.quantized_decomposed.dequantize_per_channel_group.default,)),
)
