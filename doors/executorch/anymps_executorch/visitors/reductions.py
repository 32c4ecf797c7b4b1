# SPDX-License-Identifier: Apache-2.0
"""Windows and reductions. Each docstring says what is wrong upstream."""

import math

import torch
from executorch.backends.transforms import get_shape

from ..upstream import edge, schema
from .base import Corrected, argument, dtype_of, pair


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
        self.add(
            mps_graph,
            schema.MPSAvgPool2D,
            input1_id=self.define_tensor(node.args[0], mps_graph),
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


VISITORS = (
    (MaxPool, (edge.max_pool2d_with_indices.default,)),
    (AvgPool, (edge.avg_pool2d.default,)),
    (Mean, (edge.mean.dim, edge.mean.default)),
    (Sum, (edge.sum.dim_IntList,)),
    (Any, (edge.any.dim,)),
)
