# SPDX-License-Identifier: Apache-2.0
"""AnyMPS: a graph engine with the semantics of MPSGraph.

    import anymps
    model = anymps.load("model.onnx")
    y = model(x)                # x: numpy, a list, or anything with DLPack

Graphs are built with `anymps.Graph` and `anymps.ops`, and made ready with `anymps.compile`.
"""
import json as _json

while True:
    try:
        from . import _core
        break
    except ImportError as error:  # a wheel carries what a bare system lacks
        from . import _carried
        if not _carried.load(error):
            raise
from . import _tensor, ops
from ._convert import dtype_name, numpy_dtype, to_numpy
from ._core import (Cancelled, Corrupt, Device, Error, Event, InternalError, InvalidArgument, IoError, Mismatch,
                    NotFound, OutOfMemory, Tensor, Unsupported)
from ._executable import Executable, device
from ._graph import Graph, Value, compile
from ._profile import Profile, profile
from ._program import Program
from ._tensor import Stream, asarray, empty, from_dlpack, stream, tensor

__version__ = _core.version()


def load(source, device="", threads=0, optimization_level=1, check=False, without_passes=(), method=None,
         quantize=""):
    """Loads an .onnx, .mps or .pte model, from a path or from bytes, and makes it ready to run.

    `method` is for .pte files: the default is 'forward', or the only one. The other options are those of `compile`.
    """
    if method is not None:
        source = Program(source).graph(method)
    return compile(source, device, threads, optimization_level, check, without_passes, quantize=quantize)


def devices():
    """The names of the devices."""
    return _core.device_names()


def memory_stats(name=""):
    """What a device's memory is used for, in bytes: allocated, reserved, pooled, peaks, counts, packed weights."""
    return device(name).memory_stats()


def empty_cache(name=""):
    """Gives memory that is kept for reuse back to the system."""
    device(name).empty_cache()


def trim(name=""):
    """Gives back what has lain free longer than MPS_MAX_BUFFER_AGE; runs do that in passing, a program that falls idle
    calls it."""
    device(name).trim()


def set_memory_limit(limit, name=""):
    """Bounds what a device holds, in bytes; 0 for what the machine or its container has. What does not fit raises
    OutOfMemory."""
    device(name).set_memory_limit(limit)


def synchronize(name=""):
    """Waits until a device has done its work."""
    device(name).synchronize()


def doctor():
    """Devices, cores, instruction sets, libraries, passes and environment variables, as a dict."""
    return _json.loads(_core.doctor())


__all__ = ["Cancelled", "Corrupt", "Device", "Error", "Event", "Executable", "Graph", "InternalError",
           "InvalidArgument", "IoError", "Mismatch", "NotFound", "OutOfMemory", "Profile", "Program", "Stream", "Tensor",
           "Unsupported", "Value", "asarray", "compile", "device", "devices", "doctor", "dtype_name", "empty",
           "empty_cache", "from_dlpack", "load", "memory_stats", "numpy_dtype", "ops", "profile", "set_memory_limit",
           "stream", "synchronize", "tensor", "to_numpy", "trim"]
