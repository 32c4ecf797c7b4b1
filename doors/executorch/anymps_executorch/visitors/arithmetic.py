# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, activations and choices. Each docstring says what is wrong upstream."""

import torch

from ..serialization import json_float
from ..upstream import edge, node_visitor, schema
from .base import Corrected, argument, dtype_of, is_tensor


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


UPSTREAM_UNARY = node_visitor._node_visitor_dict[
    "aten.sqrt.default"
]  # the wheel's decorator leaves no class under the class's name


class Unary(UPSTREAM_UNARY, Corrected):
    """Upstream hands integers to functions that make floats of them (sqrt, sin, ...)."""

    def define_node(self, node, mps_graph):
        source = node.args[0]
        if dtype_of(node).is_floating_point and dtype_of(source) != dtype_of(node):
            id = self.operand(source, dtype_of(node), mps_graph)
            self.add(mps_graph, self.unary_op[node.target], input1_id=id, output_id=self.define_tensor(node, mps_graph))
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


class Addmm(Corrected):
    """Upstream looks for beta and alpha among the positional arguments, where they never are, and takes one of them."""

    def define_node(self, node, mps_graph):
        mps_node = self.create_tertiary_node(node, mps_graph, schema.MPSAddmm)
        mps_node.mpsnode_union.beta = float(argument(node, 3, "beta", 1))
        mps_node.mpsnode_union.alpha = float(argument(node, 4, "alpha", 1))
        mps_graph.mps_nodes.append(mps_node)


VISITORS = (
    (Binary, tuple(Binary.kinds)),
    (HardTanh, (edge.hardtanh.default,)),
    (Clamp, (edge.clamp.default,)),
    (Where, (edge.where.self,)),
    (Addmm, (edge.addmm.default,)),
    (Unary, tuple(UPSTREAM_UNARY.target)),
)
