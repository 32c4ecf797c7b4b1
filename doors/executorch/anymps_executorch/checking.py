# SPDX-License-Identifier: Apache-2.0
"""Runs a lowered program in Python, delegates by the interpreter, and compares it with the module."""

import math

import torch
from executorch.exir.delegate import executorch_call_delegate
from torch.export.graph_signature import OutputKind
from torch.utils._pytree import tree_flatten, tree_leaves

from . import interpreter
from .lowering import clone


class Runner(torch.fx.Interpreter):
    """The lowered edge graph: calls of delegates run their payloads, all else runs as it is."""

    def call_function(self, target, args, kwargs):
        if target is executorch_call_delegate:
            return interpreter.run(args[0].processed_bytes, args[1:])
        return super().call_function(target, args, kwargs)


def graph_inputs(graph, program, inputs):
    """The values of the placeholders: constants from the program, the rest from the caller."""
    signature = program.graph_signature
    given = iter(tree_flatten(tuple(inputs))[0])
    for node in graph.nodes:
        if node.op != "placeholder":
            continue
        if name := signature.inputs_to_parameters.get(node.name) or signature.inputs_to_buffers.get(node.name):
            yield program.state_dict[name] if name in program.state_dict else program.constants[name]
        elif name := signature.inputs_to_lifted_tensor_constants.get(node.name):
            yield program.constants[name]
        else:
            yield next(given)


def run(lowered, method, inputs):
    """What a method gives: the inputs that it changes, then the outputs of the module."""
    module, program = lowered.graphs[method]
    with torch.no_grad():
        values = Runner(module).run(*graph_inputs(module.graph, program, inputs))
    specs = program.graph_signature.output_specs
    given = (OutputKind.USER_INPUT_MUTATION, OutputKind.USER_OUTPUT)
    return [v for spec, v in zip(specs, values, strict=True) if spec.kind in given]


def tolerance(lowered, fp16):
    """The difference that the float type explains: that of halves, or of what the module itself computes in."""
    halves = (torch.float16, torch.bfloat16)
    narrow = any(
        isinstance(v, torch.Tensor) and v.dtype in halves
        for method in lowered.methods.values()
        for v in [*tree_leaves(method.inputs), *method.module.parameters()]
    )
    return 2e-2 if fp16 or narrow else 1e-4


OVERFLOW = (
    "Numbers overflow that the module has no trouble with: halves reach no further than 65504. {} computes in float32"
)


def overflows(lowered, method="forward"):
    """Whether the program gives infinities or NaN where the module gives numbers."""
    pairs = zip(*results(lowered, method), strict=True)
    tensors = [(f, w) for f, w in pairs if isinstance(w, torch.Tensor) and f.shape == w.shape]
    return any(bool((w.isfinite() & ~f.isfinite()).any()) for f, w in tensors)


def difference(found, wanted):
    """The greatest |found - wanted| / max(1, |wanted|); infinite where shapes, dtypes or special values differ. Numbers
    and None are equal or not."""
    if not isinstance(wanted, torch.Tensor):
        found = found.item() if isinstance(found, torch.Tensor) and found.numel() == 1 else found
        return 0.0 if found == wanted else float("inf")
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if not wanted.numel():
        return 0.0
    found, wanted = found.double(), wanted.double()
    same = (found == wanted) | (found.isnan() & wanted.isnan())
    error = (found - wanted).abs() / wanted.abs().clamp(min=1)
    error = torch.where(same, torch.zeros_like(error), error)
    return float(error.nan_to_num(nan=math.inf, posinf=math.inf).max())


def results(lowered, method="forward", inputs=None):
    """What the program gives and what the module gives, for the inputs of the trace by default."""
    inputs = tuple(lowered.methods[method].inputs if inputs is None else inputs)
    return run(lowered, method, clone(inputs)), lowered.outcome(method, inputs)


def differences(lowered, method="forward", inputs=None):
    """One number an output."""
    return [difference(f, w) for f, w in zip(*results(lowered, method, inputs), strict=True)]
