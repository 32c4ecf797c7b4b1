# SPDX-License-Identifier: Apache-2.0
"""What the tests of the ExecuTorch door share: programs that were built, environments, and reading bundles."""
import os
import subprocess
from pathlib import Path

import flatbuffers
import numpy as np
from flatbuffers import number_types
from flatbuffers.table import Table

ROOT = Path(__file__).resolve().parents[3]
VENVS = Path(os.environ.get("ANYMPS_VENV_DIR", ROOT / ".venvs"))
RUNNER = ROOT / "build" / "bin" / "mps_executor_runner"
BACKEND = ROOT / "build" / "lib" / "libanymps_executorch_backend.so"
STOCK_WORKER = ROOT / "build" / "bin" / "executorch_stock_worker"
BUNDLES = ROOT / "tests" / "data" / "executorch"
EXPORTER_PYTHON = VENVS / "executorch" / "bin" / "python"
RUNTIME_PYTHON = VENVS / "executorch-runtime" / "bin" / "python"

NUMPY = {0: np.uint8, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.int64, 5: np.float16, 6: np.float32, 7: np.float64, 11: np.bool_}

# Programs whose buffers keep what a run writes. Each case of a bundle expects the outputs of a fresh program.
WITH_STATE = {"buffer_of_zeros", "buffer_with_content", "cache", "counter", "initial_state"}


def has_package(python, package="executorch"):
    """Whether an environment is there and has the package."""
    return python.exists() and any(python.parent.parent.glob(f"lib/python3*/site-packages/{package}"))


def runner(*args, cwd=None, env=None):
    return subprocess.run([RUNNER, *map(str, args)], capture_output=True, text=True, timeout=300, cwd=cwd,
                          env={**os.environ, **(env or {})})


class Flat:
    """A table of a FlatBuffer, by field numbers."""

    def __init__(self, buffer, at):
        self.table = Table(buffer, at)

    @classmethod
    def root(cls, buffer):
        return cls(buffer, flatbuffers.encode.Get(flatbuffers.packer.uoffset, buffer, 0))

    def offset(self, field):
        return self.table.Offset(4 + 2 * field)

    def number(self, field, kind=number_types.Uint8Flags):
        at = self.offset(field)
        return self.table.Get(kind, self.table.Pos + at) if at else 0

    def tables(self, field):
        at = self.offset(field)
        if not at:
            return []
        start = self.table.Vector(at)
        return [Flat(self.table.Bytes, self.table.Indirect(start + 4 * i)) for i in range(self.table.VectorLen(at))]

    def child(self, field):
        return Flat(self.table.Bytes, self.table.Indirect(self.table.Pos + self.offset(field)))

    def array(self, field, dtype):
        at = self.offset(field)
        if not at:
            return np.zeros(0, dtype)
        start, size = self.table.Vector(at), self.table.VectorLen(at) * np.dtype(dtype).itemsize
        return np.frombuffer(self.table.Bytes[start:start + size], dtype)

    def text(self, field):
        return self.array(field, np.uint8).tobytes().decode()


def value_of(value):
    """A value of a test case, if it is a tensor: in the logical order of its axes, over memory as the file has it."""
    if value.number(0) != 1:
        return None
    tensor = value.child(1)
    sizes, order = tensor.array(1, np.int32), tensor.array(3, np.uint8)
    data = np.frombuffer(tensor.array(2, np.uint8).tobytes(), NUMPY[tensor.number(0, number_types.Int8Flags)])
    return data.reshape(sizes[order]).transpose(np.argsort(order))


class Bundle:
    """A bundled program: the program alone, and the test cases {method: [(inputs, outputs)]}."""

    def __init__(self, path):
        root = Flat.root(bytearray(Path(path).read_bytes()))
        self.program = root.array(2, np.uint8).tobytes()
        self.cases = {suite.text(0): [([value_of(v) for v in case.tables(0)], [value_of(v) for v in case.tables(1)])
                                      for case in suite.tables(1)]
                      for suite in root.tables(1)}


def is_fp16(path):
    return "_f16" in Path(path).name or "float16" in Path(path).name


def tolerance(path):
    return 2e-2 if is_fp16(path) else 1e-4


def small_bundles():
    return sorted(path for path in BUNDLES.rglob("*.pte") if path.parent.name != "large")
