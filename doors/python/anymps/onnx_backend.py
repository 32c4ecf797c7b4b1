# SPDX-License-Identifier: Apache-2.0
"""The interface of the ONNX standard for backends: `onnx.backend.base.Backend` over `anymps`.

    from anymps.onnx_backend import AnyMPSBackend
    outputs = AnyMPSBackend.run_model(model, inputs)

What the engine does not support is an exception (`anymps.Unsupported`), never a quiet skip.
"""
import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

import anymps


class AnyMPSRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, executable, names=()):
        self.executable = executable
        self._names = list(names)  # of all inputs, those with a default too
        self._results = namedtupledict("Outputs", [value.name for value in executable.outputs])

    def run(self, inputs, **kwargs):
        """Runs with a list of inputs or a dict by name; gives a tuple that also knows the outputs' names."""
        feeds = dict(inputs) if isinstance(inputs, dict) else {}
        args = () if isinstance(inputs, dict) else list(inputs)
        if len(self.executable.inputs) < len(args) <= len(self._names):
            args, feeds = (), dict(zip(self._names, args))
        results = self.executable.run_tensors(args, feeds)
        return self._results(*(anymps.to_numpy(tensor) for tensor in results))


class AnyMPSBackend(Backend):
    """The standard's four calls. Options of `anymps.load` (threads, check, …) are passed on."""

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        known = {name: options[name] for name in ("threads", "optimization_level", "check", "without_passes")
                 if name in options}
        return AnyMPSRep(anymps.load(model.SerializeToString(), **known), [value.name for value in model.graph.input])

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **options):
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **options):
        """Runs one node. Shapes of the outputs are not needed: they come from inference."""
        arrays = [np.asarray(value) for value in inputs]
        present = [name for name in node.input if name]
        feeds = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                 for name, a in zip(present, arrays, strict=True)]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        version = options.pop("opset_version", onnx.defs.onnx_opset_version())
        graph = helper.make_graph([node], node.op_type, feeds, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
        return cls.run_model(model, arrays, device, **options)

    @classmethod
    def supports_device(cls, device):
        return device.split(":")[0] == "CPU"


prepare = AnyMPSBackend.prepare
run_model = AnyMPSBackend.run_model
run_node = AnyMPSBackend.run_node
supports_device = AnyMPSBackend.supports_device
