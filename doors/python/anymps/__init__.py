# SPDX-License-Identifier: Apache-2.0
"""AnyMPS: a graph engine with the semantics of MPSGraph.

    import anymps
    model = anymps.load("model.onnx")
    y = model(x)                # x: numpy, a list, or anything with DLPack
"""
import os

from . import _convert, _core
from ._core import (Cancelled, Corrupt, Device, Error, Event, InternalError, InvalidArgument, IoError, Mismatch,
                    NotFound, OutOfMemory, Stream, Tensor, Unsupported)
from ._convert import dtype_name, to_numpy
from ._executable import Executable, device

_find_device = device
__version__ = _core.version()


def load(source, device="", threads=0, optimization_level=1, check=False, without_passes=()):
    """Loads an .onnx or .mps model, from a path or from bytes, and makes it ready to run.

    device: 'cpu', 'reference', …; threads: 0 for the device's default; optimization_level: 0 for no passes;
    check: compare every node with the reference driver; without_passes: names of passes to leave out.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        graph = _core.Graph.load_memory(bytes(source), "memory")
    else:
        graph = _core.Graph.load(os.fspath(source))
    where = _find_device(device)
    return Executable(graph.compile(where, threads, optimization_level, check, ",".join(without_passes), 0, False), where)
