# SPDX-License-Identifier: Apache-2.0
"""Which nodes the MPS schema can express, and why the others cannot go into a delegate.

`reason(node)` is None for a node that can, and a phrase for the report otherwise. A rule is a function of the
node; the table at the end says for which targets it is asked.
"""

import operator

import torch

from .upstream import edge, exir_ops
from .visitors import REGISTRY
from .visitors.base import argument, is_tensor

DTYPES = {
    torch.float16,
    torch.float32,
    torch.bfloat16,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
}
quantized = exir_ops.edge.quantized_decomposed


def tensors_of(value):
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_of(v)]
    return [value] if isinstance(value, torch.Tensor) else []


def wrong_dtype(node):
    values = [node.meta.get("val")] + [i.meta.get("val") for i in node.all_input_nodes]
    for tensor in tensors_of(values):
        if tensor.dtype not in DTYPES:
            return f"the schema has no {str(tensor.dtype).removeprefix('torch.')} that computes"
    return None


def is_symbolic(value):
    if isinstance(value, torch.fx.Node):
        return isinstance(value.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool))
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def any_symbolic(value):
    if isinstance(value, (list, tuple)):
        return any(any_symbolic(v) for v in value)
    return is_symbolic(value)


def symbolic_argument(node):
    if any_symbolic(node.args) or any_symbolic(list(node.kwargs.values())):
        return "an argument depends on extents that only running can tell"
    return None


def open_view(node):
    if sum(is_symbolic(s) or s == -1 for s in node.args[1]) > 1:
        return "more than one extent of the shape is open"
    return None


def open_expand(node):
    shape, source = node.args[1], node.args[0].meta["val"].shape
    for back, extent in enumerate(reversed(shape), 1):
        if is_symbolic(extent):
            value = extent.meta["val"] if is_tensor(extent) else extent
            if back > len(source) or str(source[-back]) != str(value):
                return "expands to an extent that only running can tell"
    return None


def convolution(node):
    rank = len(node.args[3])
    if node.args[6]:
        return "MPSConv2D is no transposed convolution"
    if node.args[0].meta["val"].dim() not in (3, 4) or rank > 2:
        return f"MPSConv2D has no {rank} spatial dims"
    return None


def pooling(node):
    if node.args[0].meta["val"].dim() != 4:
        return "MPS pooling takes tensors of rank 4"
    return None


def float_product(node):
    if not node.meta["val"].dtype.is_floating_point:
        return "MPSMatMul multiplies floats"
    return None


def total(node):
    source = node.args[0].meta["val"]
    if not node.meta["val"].dtype.is_floating_point:
        return "MPSMean adds floats"
    if any_symbolic(list(source.shape)) or not source.numel():
        return "a sum is a mean times a count, and the count is open or zero"
    return None


def some(node):
    extent = node.args[0].meta["val"].shape[node.args[1]] if node.args[0].meta["val"].dim() else 0
    if is_symbolic(extent) or not 0 < extent < 2**14:
        return "an any is a mean that is not zero, which halves cannot tell over so many elements"
    return None


def open_slice(node):
    source, dim = node.args[0].meta["val"], argument(node, 1, "dim", 0)
    if is_symbolic(source.shape[dim]):
        return "MPSSlice has a fixed end, and the extent is open"
    return None


def open_scatter(node):
    if any_symbolic(list(node.args[0].meta["val"].shape)):
        return "MPSScatter has fixed indices, and an extent is open"
    return None


def exact(*positions):
    """Integers that the schema holds as float32."""

    def rule(node):
        if node.meta["val"].dtype.is_floating_point:
            return None
        values = [node.args[p] for p in positions if len(node.args) > p]
        if any(isinstance(v, (int, float)) and abs(v) > 2**24 for v in values):
            return "an integer is too large for the float32 that the schema holds it in"
        return None

    return rule


def padding(node):
    if any(p < 0 for p in node.args[1]):
        return "MPSConstantPadND does not crop"
    return None


def indices(node):
    for index in node.args[1]:
        if index is not None and index.meta["val"].dtype in (torch.bool, torch.uint8):
            return "a mask selects as many elements as it has ones"
    return None


def index_put(node):
    if argument(node, 3, "accumulate", False):
        return "MPSIndexPut does not accumulate"
    if any(any_symbolic(list(t.meta["val"].shape)) for t in (node.args[0], node.args[2])):
        return "MPSIndexPut has a fixed shape of values, and an extent is open"
    return indices(node)


def dynamic_quantization(node):
    """The visitors leave activations as they are; that is right only between a quantization and its inverse."""
    family = {quantized.quantize_per_token.default, quantized.dequantize_per_token.default}
    follow = {quantized.dequantize_per_token.default}
    if node.target == quantized.choose_qparams_per_token_asymmetric.default:
        follow = family
    users = [u for user in node.users for u in (user.users if user.target is operator.getitem else (user,))]
    if node.target != quantized.dequantize_per_token.default and any(u.target not in follow for u in users):
        return "quantized activations are used as such"
    return None


def getitem(node):
    if reason(node.args[0]):
        return f"its source {node.args[0].name} is outside"
    return None


RULES = {
    edge.convolution.default: convolution,
    edge.max_pool2d_with_indices.default: pooling,
    edge.avg_pool2d.default: pooling,
    edge.mm.default: float_product,
    edge.bmm.default: float_product,
    edge.addmm.default: float_product,
    edge.sum.dim_IntList: total,
    edge.any.dim: some,
    edge.slice_copy.Tensor: open_slice,
    edge.slice_scatter.default: open_scatter,
    edge.full.default: exact(1),
    edge.full_like.default: exact(1),
    edge.scalar_tensor.default: exact(0),
    edge.arange.start_step: exact(0, 1, 2),
    edge.clamp.default: exact(1, 2),
    edge.constant_pad_nd.default: padding,
    edge.index.Tensor: indices,
    edge.index_put.default: index_put,
    quantized.choose_qparams_per_token_asymmetric.default: dynamic_quantization,
    quantized.quantize_per_token.default: dynamic_quantization,
    quantized.dequantize_per_token.default: dynamic_quantization,
    operator.getitem: getitem,
}


def reason(node):
    """None if a call of the edge graph can go into a delegate, else why it cannot."""
    name = getattr(node.target, "__name__", str(node.target))
    if not tensors_of([node.meta.get("val")]):
        return "it gives a number and no tensor"
    if name not in REGISTRY or name.startswith("dim_order_ops."):
        return "the MPS schema has no such node"
    if node.target == edge.view_copy.default:
        found = open_view(node)
    elif node.target == edge.expand_copy.default:
        found = open_expand(node)
    else:
        found = symbolic_argument(node)
    found = found or wrong_dtype(node)
    if not found and node.target in RULES:
        found = RULES[node.target](node)
    return found
