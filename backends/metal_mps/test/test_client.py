#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a running server from a client's side: tritonserver with the metal_mps backend, or `anymps serve`.

    python3 test_client.py [--protocol http|grpc] [--url HOST:PORT] [--model NAME ...]

Asks the server for its models and runs each one: a request, a batch, two requests at once, and one that must be refused.
What comes out is checked against what the model says of itself, a batch against its rows one by one, and the numbers of a
model named add_sub against numpy. Prints what it checks; the exit code is 0 if all is well. Needs tritonclient[http,grpc]: a
Python that does not have it hands over to that of .venvs/triton (scripts/env triton).
"""
import argparse
import importlib
import os
import sys
import time
from pathlib import Path


def start_again(missing):
    """With the Python that has the clients."""
    root = Path(__file__).resolve().parents[3]
    python = Path(os.environ.get("ANYMPS_VENV_DIR", root / ".venvs")) / "triton" / "bin" / "python"
    if not python.exists() or os.environ.get("ANYMPS_TEST_CLIENT_STARTED"):
        sys.exit(f"test_client.py needs {missing.name}, which {sys.executable} does not have.\n"
                 f"Install it with: {root / 'scripts' / 'env'} triton   (or: pip install 'tritonclient[http,grpc]')")
    os.execve(python, [str(python), *sys.argv], {**os.environ, "ANYMPS_TEST_CLIENT_STARTED": "1"})


try:
    import numpy as np
    from tritonclient.utils import InferenceServerException, triton_to_np_dtype
except ModuleNotFoundError as error:
    start_again(error)

PORTS = {"http": 8000, "grpc": 8001}
ANY_EXTENT = 3  # what is tried where a model takes any extent


class Checks:
    """Counts and prints."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, good, detail=""):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        print(f"  {'ok  ' if good else 'FAIL'} {what}" + (f": {detail}" if detail and not good else ""), flush=True)
        return good


class Model:
    """A model as the server describes it; HTTP gives dictionaries, gRPC messages that print as such."""

    def __init__(self, client, name, grpc):
        as_json = {"as_json": True} if grpc else {}
        self.name = name
        self.metadata = client.get_model_metadata(name, **as_json)
        config = client.get_model_config(name, **as_json)
        self.config = config.get("config", config)
        self.batched = int(self.config.get("max_batch_size", 0)) > 0
        self.in_sequence = "sequence_batching" in self.config
        self.ragged = any(i.get("allow_ragged_batch") for i in self.config.get("input", []))  # one row per request

    def random_inputs(self, rng, rows=1):
        """{name: array} that fits, with `rows` rows if the model has a batch axis."""
        arrays = {}
        for tensor in self.metadata.get("inputs", []):
            shape = [int(d) for d in tensor["shape"]]
            if self.batched:
                shape[0] = rows
            shape = [ANY_EXTENT if d < 0 else d for d in shape]
            arrays[tensor["name"]] = random_array(rng, tensor["datatype"], shape)
        return arrays

    def datatype(self, name):
        return next(t["datatype"] for t in self.metadata["inputs"] if t["name"] == name)


def random_array(rng, datatype, shape):
    if datatype == "BYTES":
        return np.array([f"text {i}".encode() for i in rng.integers(0, 9, int(np.prod(shape)))], dtype=np.object_).reshape(shape)
    dtype = np.dtype(triton_to_np_dtype(datatype))
    if dtype.kind in "iu":
        return rng.integers(0, 9, shape).astype(dtype)
    return (rng.standard_normal(shape) > 0) if dtype.kind == "b" else rng.standard_normal(shape).astype(dtype)


class Tester:
    def __init__(self, protocol, url):
        self.grpc = protocol == "grpc"
        self.library = importlib.import_module(f"tritonclient.{protocol}")
        options = {} if self.grpc else {"concurrency": 2}
        self.client = self.library.InferenceServerClient(url, **options)
        self.checks, self.rng = Checks(), np.random.default_rng(1)
        self.sequence = 1000

    def inputs(self, model, arrays):
        made = []
        for name, array in arrays.items():
            tensor = self.library.InferInput(name, list(array.shape), model.datatype(name))
            tensor.set_data_from_numpy(array)
            made.append(tensor)
        return made

    def options(self, model):
        """A model that works on sequences gets one of a single request each time."""
        if not model.in_sequence:
            return {}
        self.sequence += 1
        return {"sequence_id": self.sequence, "sequence_start": True, "sequence_end": True}

    def infer(self, model, arrays):
        result = self.client.infer(model.name, self.inputs(model, arrays), **self.options(model))
        return {t["name"]: result.as_numpy(t["name"]) for t in model.metadata["outputs"]}

    def server(self):
        print("server")
        metadata = self.client.get_server_metadata(**({"as_json": True} if self.grpc else {}))
        self.checks.check("is live", self.client.is_server_live())
        self.checks.check("tells its name and version", metadata.get("name") and metadata.get("version"), metadata)
        index = self.client.get_model_repository_index(**({"as_json": True} if self.grpc else {}))
        models = index.get("models", []) if self.grpc else index
        return sorted({m["name"] for m in models if m.get("state") == "READY"})

    def model(self, name):
        print(name)
        self.checks.check("is ready", self.client.is_model_ready(name))
        model = Model(self.client, name, self.grpc)
        before = self.count(name)
        arrays = model.random_inputs(self.rng)
        outputs = self.infer(model, arrays)
        for tensor in model.metadata["outputs"]:
            self.output(model, tensor, outputs[tensor["name"]])
        if name == "add_sub":
            a, b = arrays["INPUT0"], arrays["INPUT1"]
            self.checks.check("adds", np.array_equal(outputs["OUTPUT0"], a + b))
            self.checks.check("subtracts", np.array_equal(outputs["OUTPUT1"], a - b))
        if model.batched and not model.in_sequence and not model.ragged and int(model.config["max_batch_size"]) >= 2:
            self.batch(model)
        self.concurrent(model, arrays, outputs)
        self.refusal(model, arrays)
        self.checks.check("statistics count the requests", self.count(name) > before)

    def output(self, model, tensor, array):
        shape = [int(d) for d in tensor["shape"]]
        good = array is not None and array.ndim == len(shape) and all(d < 0 or d == e for d, e in zip(shape[model.batched:], array.shape[model.batched:]))
        self.checks.check(f"output {tensor['name']} is {tensor['datatype']} {shape}", good, None if array is None else array.shape)

    def batch(self, model):
        """Two rows at once give what each gives alone."""
        arrays = model.random_inputs(self.rng, rows=2)
        whole = self.infer(model, arrays)
        rows = [self.infer(model, {name: array[i:i + 1] for name, array in arrays.items()}) for i in range(2)]
        same = all(close(array, np.concatenate([row[name] for row in rows])) for name, array in whole.items())
        self.checks.check("a batch of two is its two rows", same)

    def concurrent(self, model, arrays, expected):
        """Two requests under way at once."""
        if self.grpc:
            answers = []
            for _ in range(2):
                self.client.async_infer(model.name, self.inputs(model, arrays), lambda result, error: answers.append((result, error)),
                                        **self.options(model))
            wait_for(lambda: len(answers) == 2)
            good = all(error is None for _, error in answers)
            results = [result for result, _ in answers]
        else:
            calls = [self.client.async_infer(model.name, self.inputs(model, arrays), **self.options(model)) for _ in range(2)]
            results, good = [call.get_result() for call in calls], True
        comparable = not model.in_sequence
        good = good and all(not comparable or close(r.as_numpy(name), array) for r in results for name, array in expected.items())
        self.checks.check("two requests at once have the same answer", good and len(results) == 2)

    def refusal(self, model, arrays):
        """One axis too many is an error that names the input; the server lives on."""
        name, array = next(iter(arrays.items()))
        try:
            self.infer(model, {**arrays, name: array.reshape((1, *array.shape))})
            self.checks.check("a wrong shape is refused", False, "it was taken")
        except InferenceServerException as error:
            self.checks.check("a wrong shape is refused with words", name in str(error.message()), error.message())

    def count(self, name):
        statistics = self.client.get_inference_statistics(name, **({"as_json": True} if self.grpc else {}))
        return sum(int(s["inference_stats"]["success"].get("count", 0)) for s in statistics["model_stats"])


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)


def close(a, b):
    if a is None or a.shape != b.shape:
        return False
    return np.array_equal(a, b) if a.dtype == object else np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protocol", choices=PORTS, default="http")
    parser.add_argument("--url", help="host and port (default: this machine, 8000 for http, 8001 for grpc)")
    parser.add_argument("--model", action="append", help="only this one; may be given again")
    args = parser.parse_args()
    args.url = args.url or f"localhost:{PORTS[args.protocol]}"
    return args


def main():
    args = parse_args()
    print(f"{args.protocol} at {args.url}")
    tester = Tester(args.protocol, args.url)
    try:
        models = tester.server()
    except (InferenceServerException, OSError) as error:
        sys.exit(f"no server answers at {args.url}: {error}\nStart one: anymps serve --model-repository DIR")
    for name in args.model or models:
        try:
            tester.model(name)
        except InferenceServerException as error:
            tester.checks.check("answers", False, error)
    if not models:
        tester.checks.check("has a model that is ready", False)
    print(f"{tester.checks.passed} passed, {tester.checks.failed} failed")
    return 1 if tester.checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
