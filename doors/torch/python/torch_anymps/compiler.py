# SPDX-License-Identifier: Apache-2.0
"""A graph of ATen ops, as AOTAutograd makes it, computed by the engine as one executable.

The rows of the table serve here too (csrc/compiled): this file only writes the graph down. Nodes that have no row run one by one,
between executables. Shapes that are symbols are numbers when the graph is called: there is an executable for each set of
them, up to a bound.
"""

import functools
import json
import math
import operator
from collections import OrderedDict

import torch
from functorch.compile import make_boxed_func
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from . import native

MAX_SHAPES = 64
_WEIGHT = "anymps_weight"  # in the meta of an input that is a parameter or a buffer

_DTYPES = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6,
    torch.float64: 7, torch.complex64: 9, torch.complex128: 10, torch.bool: 11, torch.bfloat16: 15,
}  # fmt: skip


class CannotWrite(Exception):
    """A node that the engine cannot be told of."""


def op_name(target):
    """aten.add.Tensor as "add.Tensor", aten.relu.default as "relu"."""
    overload = "" if target._overloadname == "default" else "." + target._overloadname
    return target._schema.name.removeprefix("aten::") + overload


@functools.cache
def _has_row(name):
    return bool(native.load().anymps_torch_has_row(name.encode()))


def is_supported(node):
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return isinstance(node.args[0], torch.fx.Node) and is_supported(node.args[0])
    if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace != "aten":
        return False
    if node.target._schema.is_mutable or not _has_row(op_name(node.target)):
        return False
    values = node.meta.get("val")
    results = values if isinstance(values, (tuple, list)) else [values]
    if isinstance(values, list):  # a list of tensors as the one result
        return False
    inputs = [argument.meta.get("val") for argument in node.all_input_nodes]
    tensors = [value for value in [*results, *inputs] if isinstance(value, torch.Tensor)]
    return all(value.dtype in _DTYPES and value.layout == torch.strided for value in tensors) and any(
        value.device.type == "mps" for value in tensors
    )


class _Support(OperatorSupportBase):
    def is_node_supported(self, submodules, node):
        return is_supported(node)


class Writer:
    """A graph as text, for inputs of known shapes. `number` gives the value of a node that is a number."""

    def __init__(self, number):
        self.number = number
        self.values = {}
        self.count = 0
        self.inputs, self.weights, self.nodes = [], [], []

    def _described(self, value):
        return {"dtype": _DTYPES[value.dtype], "dims": self._numbers(value.shape)}

    def _numbers(self, numbers):
        return [self.number(number) for number in numbers]

    def _new_value(self):
        self.count += 1
        return self.count - 1

    def add_input(self, node):
        if node.meta.get(_WEIGHT):
            self.weights.append(len(self.inputs))
        self.inputs.append(self._described(node.meta["val"]))
        self.values[node] = self._new_value()

    def _argument(self, value):
        if isinstance(value, torch.fx.Node):
            if isinstance(value.meta.get("val"), torch.Tensor):
                return {"value": self.values[value]}
            return self.number(value.meta["val"])
        if isinstance(value, (list, tuple)):
            return [self._argument(item) for item in value]
        if isinstance(value, torch.dtype):
            return {"dtype": _DTYPES[value]} if value in _DTYPES else None
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self.number(value)
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        return None  # devices, layouts, memory formats: of no concern here

    def add_node(self, node):
        if node.target is operator.getitem:
            self.values[node] = self.values[node.args[0]][node.args[1]]
            return
        value = node.meta["val"]
        several = isinstance(value, tuple)
        results = value if several else (value,)
        self.nodes.append({
            "op": op_name(node.target),
            "args": [self._argument(argument) for argument in node.args],
            "kwargs": {name: self._argument(argument) for name, argument in node.kwargs.items()},
            "results": [self._described(result) if isinstance(result, torch.Tensor) else None for result in results],
        })  # fmt: skip
        places = [self._new_value() for _ in results]
        self.values[node] = places if several else places[0]

    def text(self, outputs):
        described = []
        for node in outputs:
            value = node.meta["val"]
            strides = self._numbers(value.stride())
            if 0 in strides:  # a result has memory for each of its elements
                strides = torch.empty(self._numbers(value.shape), device="meta").stride()
            described.append({"value": self.values[node], **self._described(value), "strides": strides})
        return json.dumps({"inputs": self.inputs, "weights": self.weights, "nodes": self.nodes, "outputs": described})


class Executable:
    """A graph of supported nodes. Its inputs are tensors, and numbers that shapes are made of."""

    def __init__(self, module):
        self.graph = module.graph
        self.placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]
        self.tensors = [isinstance(node.meta.get("val"), torch.Tensor) for node in self.placeholders]
        returned = next(node for node in self.graph.nodes if node.op == "output").args[0]
        self.single = isinstance(returned, torch.fx.Node)
        self.returned = [returned] if self.single else list(returned)
        self.place = {node: i for i, node in enumerate(self.placeholders)}
        self.computed = [node for node in dict.fromkeys(self.returned) if isinstance(node, torch.fx.Node) and not self._is_given(node)]
        self.computed_at = {node: i for i, node in enumerate(self.computed)}
        self.dynamic = any(
            isinstance(size, torch.SymInt)
            for node in self.graph.nodes
            for value in [node.meta.get("val")]
            if isinstance(value, torch.Tensor)
            for size in (*value.shape, *value.stride())
        )
        self.compiled = OrderedDict()

    def _is_given(self, node):
        """An input, or a view of one: it is returned as it is, without a copy."""
        if node.op == "placeholder":
            return True
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload) or not node.target.is_view:
            return False
        first, *others = node.args
        plain = not any(isinstance(item, torch.fx.Node) for item in torch.utils._pytree.tree_leaves((others, node.kwargs)))
        symbols = any(isinstance(item, torch.SymInt) for item in torch.utils._pytree.tree_leaves((others, node.kwargs)))
        return plain and not symbols and isinstance(first, torch.fx.Node) and self._is_given(first)

    def _given(self, node, arguments):
        if node.op == "placeholder":
            return arguments[self.place[node]]
        return node.target(self._given(node.args[0], arguments), *node.args[1:], **node.kwargs)

    def _write(self, arguments):
        symbols = {}
        for node, given in zip(self.placeholders, arguments):
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor):
                for symbol, number in zip((*value.shape, *value.stride()), (*given.shape, *given.stride())):
                    if isinstance(symbol, torch.SymInt):
                        symbols[symbol.node.expr] = number
            elif isinstance(value, torch.SymInt):
                symbols[value.node.expr] = given

        def number(value):
            if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                expression = value.node.expr.subs(symbols)
                return bool(expression) if isinstance(value, torch.SymBool) else int(expression) if isinstance(value, torch.SymInt) else float(expression)
            return value

        writer = Writer(number)
        for node, is_tensor in zip(self.placeholders, self.tensors):
            if is_tensor:
                writer.add_input(node)
        if self.dynamic:  # each set of shapes would hold weights of its own
            writer.weights.clear()
        for node in self.graph.nodes:
            if node.op == "call_function":
                writer.add_node(node)
        return writer.text(self.computed)

    def _executable(self, arguments):
        key = ()
        if self.dynamic:
            key = tuple(
                (tuple(given.shape), given.stride()) if is_tensor else given for given, is_tensor in zip(arguments, self.tensors)
            )
        found = self.compiled.get(key)
        if found is None:
            found = self.compiled[key] = native.graph(self._write(arguments))
            if len(self.compiled) > MAX_SHAPES:
                self.compiled.popitem(last=False)
        elif self.dynamic:
            self.compiled.move_to_end(key)
        return found

    def boxed(self):
        """As AOTAutograd calls it: with a list of arguments. What is only tensors of known shapes goes straight to the engine."""
        plain = all(not isinstance(node, torch.fx.Node) or node in self.computed_at or node in self.place for node in self.returned)
        if self.dynamic or self.single or not self.computed or not all(self.tensors) or not plain:
            return make_boxed_func(self)
        as_made = self.returned == self.computed
        run = None

        def call(arguments):
            nonlocal run
            if run is None:
                run = self._executable(arguments)
            made = run(arguments)
            if as_made:
                return made
            at, place = self.computed_at, self.place
            return [made[at[node]] if node in at else arguments[place[node]] if node in place else node for node in self.returned]

        call._boxed_call = True
        return call

    def __call__(self, *arguments):
        made = ()
        if self.computed:
            made = self._executable(arguments)([given for given, is_tensor in zip(arguments, self.tensors) if is_tensor])
        if self.single and self.computed:
            return made[0]
        results = [
            node if not isinstance(node, torch.fx.Node) else made[self.computed_at[node]] if node in self.computed_at else self._given(node, arguments)
            for node in self.returned
        ]
        return results[0] if self.single else results


def compile_graph(module, weights=()):
    """A function of a list of arguments, for a graph module of ATen ops. `weights`: which of them are rather the same at each call."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for i in weights:
        if isinstance(placeholders[i].meta.get("val"), torch.Tensor):
            placeholders[i].meta[_WEIGHT] = True
    whole = all(is_supported(node) for node in module.graph.nodes if node.op == "call_function")
    if whole and _returns_tensors(module):
        return Executable(module).boxed()
    partitioner = CapabilityBasedPartitioner(module, _Support(), allows_single_node_partition=whole)
    partitions = partitioner.propose_partitions()
    fused = partitioner.fuse_partitions(partitions, prefix="anymps_")
    for name, submodule in list(fused.named_children()):
        if name.startswith("anymps_"):
            delattr(fused, name)
            setattr(fused, name, _Called(Executable(submodule)))
    fused.recompile()
    return make_boxed_func(fused)


def _returns_tensors(module):
    returned = next(node for node in module.graph.nodes if node.op == "output").args[0]
    return all(node is None or isinstance(node.meta.get("val"), torch.Tensor) for node in torch.utils._pytree.tree_leaves(returned))


class _Called(torch.nn.Module):
    def __init__(self, executable):
        super().__init__()
        self.executable = executable

    def forward(self, *arguments):
        return self.executable(*arguments)
