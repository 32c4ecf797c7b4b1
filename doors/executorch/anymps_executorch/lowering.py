# SPDX-License-Identifier: Apache-2.0
"""From a torch module to an ExecuTorch program with its delegates, and to the bytes of a bundled program."""

import collections
import copy
from dataclasses import dataclass

import torch
from torch.export.graph_signature import OutputKind
from torch.utils._pytree import tree_flatten, tree_unflatten

from . import bundling, passes, report, upstream  # noqa: F401  (upstream silences the wheel before it is imported)
from .partitioner import Partitioner

from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge  # isort: skip
from executorch.exir.schema import DelegateCall  # isort: skip


@dataclass
class Method:
    """One entry point of a program: a module, arguments to trace it with, and torch.export's dynamic_shapes."""

    module: torch.nn.Module
    inputs: tuple
    dynamic_shapes: object = None
    exported: object = None  # torch.export's program, where it is there already


@dataclass
class Lowered:
    program: object
    methods: dict
    reports: dict
    graphs: dict

    def buffer(self):
        return bytes(self.program.buffer)

    def changed_inputs(self, method="forward"):
        return changed_inputs(self.graphs[method][1])

    def outcome(self, method, inputs):
        """What the module gives for some inputs, in the order of the program's outputs."""
        return outcome(self.methods[method].module, inputs, self.changed_inputs(method))

    def bundle(self, cases=None):
        """The bytes of a bundled program: cases are {method: [inputs, ...]}, by default the inputs of the trace."""
        cases = cases or {name: [m.inputs] for name, m in self.methods.items()}
        cases = {
            name: [(tree_flatten(tuple(inputs))[0], self.outcome(name, inputs)) for inputs in all_inputs]
            for name, all_inputs in cases.items()
        }
        return bundling.Bundle(self.buffer(), cases).serialized()


def own_storage(value):
    """A contiguous tensor with a storage of its own."""
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


def outcome(module, inputs, changed=()):
    """What a fresh run of a module gives, as a program gives it: the inputs that it changed, then its outputs."""
    inputs = clone(tuple(inputs))
    with torch.no_grad():
        outputs = tree_flatten(run_fresh(module, inputs))[0]
    flat = tree_flatten(inputs)[0]
    return [flat[i] for i in changed] + outputs


def changed_inputs(program):
    """Which inputs, of the flat list of them, an exported program writes to, in the order of its outputs."""
    signature = program.graph_signature
    mutations = [s.target for s in signature.output_specs if s.kind == OutputKind.USER_INPUT_MUTATION]
    return [signature.user_inputs.index(name) for name in mutations]


def clone(inputs):
    """The inputs again, contiguous, so that a module that writes into them does not spoil them."""
    flat, spec = tree_flatten(inputs)
    return tree_unflatten([own_storage(v) for v in flat], spec)


def evaluating(module):
    """The module in evaluation mode. One that torch.export made, to be quantized for example, has a function for that."""
    try:
        return module.eval()
    except NotImplementedError:
        from torchao.quantization.pt2e import move_exported_model_to_eval

        return move_exported_model_to_eval(module)


def open_axes(shapes):
    """Of torch.export's dynamic_shapes, the entry of each tensor: {axis: Dim} or None."""
    if shapes is None or (isinstance(shapes, dict) and all(isinstance(axis, int) for axis in shapes)):
        return [shapes]
    parts = shapes.values() if isinstance(shapes, dict) else shapes
    return [entry for part in parts for entry in open_axes(part)] if isinstance(shapes, (dict, list, tuple)) else [None]


def open_inputs(inputs, shapes):
    """The inputs with 2 instead of 1 as the extent of axes that stay open: torch.export takes a 1 for a constant."""
    flat, spec = tree_flatten(inputs)
    axes = open_axes(shapes)
    if len(flat) != len(axes):
        return inputs
    for i, entry in enumerate(axes):
        for axis, dim in (entry or {}).items():
            if type(dim) is torch.export.Dim and flat[i].shape[axis] == 1 and dim.max >= 2:
                flat[i] = torch.cat([flat[i], flat[i]], axis)
    return tree_unflatten(flat, spec)


def trace(method):
    """torch.export of a module in evaluation mode; non-strict where tracing through Python does better."""
    with torch.no_grad():
        module = evaluating(method.module)
        inputs = open_inputs(clone(tuple(method.inputs)), method.dynamic_shapes)
        return torch.export.export(module, inputs, dynamic_shapes=method.dynamic_shapes, strict=False)


def lower(methods, fp16=True, partitioner=None, preserve_ops=(), on_edge=None, **backend_config):
    """Lowers one module (a Method) or several ({name: Method}) to MPSBackend.

    backend_config goes to ExecutorchBackendConfig; delegates are inlined unless it says otherwise, as in upstream's
    example. `on_edge` sees the edge program before it is lowered; `partitioner` is for tests."""
    methods = methods if isinstance(methods, dict) else {"forward": methods}
    with torch.no_grad():
        edge = to_edge(
            {name: m.exported or trace(m) for name, m in methods.items()},
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
        name_delegates(program)
    return Lowered(program, methods, reports, graphs)


def name_delegates(program):
    """Puts the delegate's name before those of its nodes in what links a profile with the module, as a profile of the
    engine has them: conv2d_3 becomes delegate0/conv2d_3, and delegate0_1/conv2d_3 where it is called again."""
    for plan in program.executorch_program.execution_plan:
        seen = collections.Counter()
        found = program.delegate_map.get(plan.name, {})
        for number, instruction in enumerate(plan.chains[0].instructions):
            call = instruction.instr_args
            if not isinstance(call, DelegateCall):
                continue
            before = seen[call.delegate_index]
            seen[call.delegate_index] += 1
            stem = f"delegate{call.delegate_index}" + (f"_{before}" if before else "")
            entry = found.get(number, {})
            if nodes := entry.get("delegate_map"):
                entry["delegate_map"] = {f"{stem}/{node}": handles for node, handles in nodes.items()}


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
