# SPDX-License-Identifier: Apache-2.0
"""The partitioner: the wheel's, asking support.py about each node and keeping the reasons for the report."""

import torch
from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
    generate_partitions_from_list_of_nodes,
)
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from torch.fx.passes.operator_support import OperatorSupportBase

from . import serialization, visitors
from .support import reason
from .upstream import MPSPartitioner


class Support(OperatorSupportBase):
    def __init__(self):
        self.outside = {}

    def is_node_supported(self, submodules, node):
        if node.op != "call_function":
            return False
        found = reason(node)
        if found:
            self.outside[node.name] = found
        return found is None


class Partitioner(MPSPartitioner):
    """One delegate of all that can be in one, also with indices of several dims: upstream puts these in delegates of
    their own, which its runtime then refuses."""

    def __init__(self, fp16):
        serialization.apply()
        visitors.apply()
        super().__init__([CompileSpec("use_fp16", bytes([bool(fp16)]))])
        self.outside = {}

    def generate_partitions(self, edge_program):
        self.supported_ops = Support()
        partitions = generate_partitions_from_list_of_nodes(edge_program.graph_module, op_support=self.supported_ops)
        self.outside.update(self.supported_ops.outside)
        return partitions

    def use_metal_kernel(self, node: torch.fx.Node):
        return False

    def partition(self, edge_program):
        partitions = self.generate_partitions(edge_program)
        if partitions:
            self.tag_nodes(partitions)
            tag_constant_data(edge_program)
            untag_mutated_buffers(edge_program)
        return PartitionResult(tagged_exported_program=edge_program, partition_tags=self.partition_tags)


def untag_mutated_buffers(program):
    """Upstream takes a buffer for a constant when the node that reads it is not the one that makes its new value: a
    cache would never change."""
    signature = program.graph_signature
    mutated = set(signature.buffers_to_mutate.values())
    for node in program.graph.nodes:
        if node.op == "placeholder" and signature.inputs_to_buffers.get(node.name) in mutated:
            node.meta.pop("delegation_tag", None)
