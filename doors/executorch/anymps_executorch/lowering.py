# SPDX-License-Identifier: Apache-2.0
"""From a torch module to an ExecuTorch program with its delegates, and to the bytes of a bundled program."""

import copy
from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from . import passes, report, upstream  # noqa: F401  (upstream silences the wheel before it is imported)
from .partitioner import Partitioner

from executorch.devtools import BundledProgram  # isort: skip
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite  # isort: skip
from executorch.devtools.bundled_program.serialize import (  # isort: skip
    serialize_from_bundled_program_to_flatbuffer,
)
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge  # isort: skip


@dataclass
class Method:
    """One entry point of a program: a module, arguments to trace it with, and torch.export's dynamic_shapes."""

    module: torch.nn.Module
    inputs: tuple
    dynamic_shapes: object = None


@dataclass
class Lowered:
    program: object
    methods: dict
    reports: dict
    graphs: dict

    def buffer(self):
        return bytes(self.program.buffer)

    def bundle(self, cases=None):
        """The bytes of a bundled program: cases are {method: [inputs, ...]}, by default the inputs of the trace."""
        cases = cases or {name: [m.inputs] for name, m in self.methods.items()}
        suites = [
            MethodTestSuite(
                method_name=name,
                test_cases=[test_case(self.methods[name].module, inputs) for inputs in all_inputs],
            )
            for name, all_inputs in cases.items()
        ]
        return bytes(serialize_from_bundled_program_to_flatbuffer(BundledProgram(self.program, suites)))


def own_storage(value):
    """A tensor with a storage of its own: the wheel writes storages, and a slice's holds more than the slice."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_like(value, memory_format=torch.contiguous_format).copy_(value.detach())


def run_fresh(module, inputs):
    """What a fresh program gives: a run must not see what the ones before left in the module's buffers."""
    try:
        module = copy.deepcopy(module)
    except RuntimeError:  # torch copies no tensors that were computed; a module that keeps one is run as it is
        pass
    return module(*inputs)


def test_case(module, inputs, expected=None):
    inputs = tuple(inputs)
    with torch.no_grad():
        expected = run_fresh(module, clone(inputs)) if expected is None else expected
    return MethodTestCase(
        inputs=[own_storage(v) for v in tree_flatten(inputs)[0]],
        expected_outputs=[own_storage(v) for v in tree_flatten(expected)[0]],
    )


def clone(inputs):
    """The inputs again, contiguous, so that a module that writes into them does not spoil them."""
    flat, spec = tree_flatten(inputs)
    return tree_unflatten([own_storage(v) for v in flat], spec)


def export(method):
    """torch.export of a module in evaluation mode; non-strict where tracing through Python does better."""
    with torch.no_grad():
        module = method.module.eval()
        inputs = clone(tuple(method.inputs))
        return torch.export.export(module, inputs, dynamic_shapes=method.dynamic_shapes, strict=False)


def lower(methods, fp16=True, partitioner=None, preserve_ops=(), on_edge=None, **backend_config):
    """Lowers one module (a Method) or several ({name: Method}) to MPSBackend.

    backend_config goes to ExecutorchBackendConfig; delegates are inlined unless it says otherwise, as in upstream's
    example. `on_edge` sees the edge program before it is lowered; `partitioner` is for tests."""
    methods = methods if isinstance(methods, dict) else {"forward": methods}
    with torch.no_grad():
        edge = to_edge(
            {name: export(m) for name, m in methods.items()},
            compile_config=EdgeCompileConfig(
                _check_ir_validity=False, _skip_dim_order=True, preserve_ops=list(preserve_ops)
            ),
        )
        for name in methods:
            passes.apply(edge.exported_program(name))
        before = {name: report.calls(edge.exported_program(name)) for name in methods}
        if on_edge:
            on_edge(edge)
        make = partitioner or Partitioner
        partitioners = {name: make(fp16) for name in methods}
        edge = edge.to_backend(partitioners)
        reports, graphs = {}, {}
        for name in methods:
            lowered = edge.exported_program(name)
            reports[name] = report.Report(name, before[name], lowered, getattr(partitioners[name], "outside", {}))
            graphs[name] = snapshot(lowered)
            keep_initial_state(lowered)
        backend_config.setdefault("extract_delegate_segments", False)
        program = edge.to_executorch(ExecutorchBackendConfig(**backend_config))
    return Lowered(program, methods, reports, graphs)


def keep_initial_state(program):
    """Has the program hold what a buffer that changes starts with, unless that is zeros: ExecuTorch leaves it out."""
    signature = program.graph_signature
    changed = set(signature.buffers_to_mutate.values())
    for node in program.graph.nodes:
        name = signature.inputs_to_buffers.get(node.name) if node.op == "placeholder" else None
        if name in changed and bool(program.state_dict.get(name, program.constants.get(name)).any()):
            node.meta["et_init_buffer"] = True


def snapshot(program):
    """(graph module, program) as they are now: to_executorch rewrites the graph where it stands."""
    module = program.graph_module
    return torch.fx.GraphModule(module, copy.deepcopy(module.graph)), program
