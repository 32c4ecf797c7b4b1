#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speaks worker_protocol.md for a peer runtime: peer_worker.py onnxruntime|openvino.

The runtime is imported in `load`, so the process's memory before that is Python and numpy alone.
"""
import importlib.metadata
import json
import re
import sys
import time
from pathlib import Path

import numpy as np


class OnnxRuntime:
    """Settings: all graph optimizations, sequential execution, default spinning, shapes fixed to the inputs'."""

    package = "onnxruntime"

    def load(self, path, threads, inputs):
        import onnxruntime as ort

        start = time.perf_counter()
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        # Batch is N and sequence is S in every reference model; others may mean something else by these names.
        reference = "input_ids" in inputs or list(inputs) == ["input"]
        shape = next(iter(inputs.values())).shape if reference else ()
        for name, size in zip("NS", shape if len(shape) == 2 else shape[:1]):
            options.add_free_dimension_override_by_name(name, size)
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.names = [o.name for o in self.session.get_outputs()]
        return time.perf_counter() - start

    def run(self, inputs):
        return self.session.run(self.names, inputs)


class OpenVino:
    """Settings: latency hint, one stream, f32 (not the processor's bf16), shapes fixed to the inputs'."""

    package = "openvino"

    def load(self, path, threads, inputs):
        import openvino as ov

        start = time.perf_counter()
        core = ov.Core()
        model = core.read_model(path)
        if inputs:
            model.reshape({name: list(array.shape) for name, array in inputs.items()})
        compiled = core.compile_model(model, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": str(threads),
            "INFERENCE_PRECISION_HINT": "f32", "ENABLE_HYPER_THREADING": "YES"})
        self.names = [o.get_any_name() for o in compiled.outputs]
        self.request = compiled.create_infer_request()
        elapsed = time.perf_counter() - start
        got = compiled.get_property("INFERENCE_NUM_THREADS")
        if got != threads:
            print(f"openvino uses {got} threads, not {threads}", file=sys.stderr)
        return elapsed

    def run(self, inputs):
        # share_inputs and share_outputs: no copies beyond what the runtime itself needs.
        results = self.request.infer(inputs, share_inputs=True, share_outputs=True)
        return list(results.values())


RUNTIMES = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}


class Worker:
    def __init__(self, name):
        self.name, self.runtime = name, RUNTIMES[name]()
        self.inputs, self.results, self.loaded = {}, None, False

    def version(self, _):
        return {"runtime": self.name, "version": importlib.metadata.version(self.runtime.package)}

    def input(self, rest):
        name, path = rest.split(" ", 1)
        self.inputs[name] = np.load(path)
        return {"ok": True}

    def load(self, rest):
        path, threads = rest.rsplit(" ", 1)
        seconds = self.runtime.load(path, int(threads), self.inputs)
        self.loaded, self.results = True, None
        return {"load_ms": seconds * 1e3}

    def run(self, rest):
        if not self.loaded:
            raise ValueError("run before load")
        ms = []
        for _ in range(int(rest)):
            start = time.perf_counter()
            self.results = self.runtime.run(self.inputs)
            ms.append((time.perf_counter() - start) * 1e3)
        return {"ms": ms}

    def output(self, rest):
        if self.results is None:
            raise ValueError("output before run")
        for name, array in zip(self.runtime.names, self.results):
            np.save(Path(rest) / (re.sub(r"[^A-Za-z0-9_.-]", "_", name) + ".npy"), array)
        return {"outputs": self.runtime.names}


def main():
    worker = Worker(sys.argv[1])
    commands = {"version", "input", "load", "run", "output"}
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "quit":
            break
        try:
            if command not in commands:
                raise ValueError(f"no such command: {command}")
            answer = getattr(worker, command)(rest)
        except Exception as error:  # every failure is an answer: the driver decides
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
