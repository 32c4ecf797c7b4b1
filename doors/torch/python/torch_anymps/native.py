# SPDX-License-Identifier: Apache-2.0
"""The library of kernels: loading it, and what it tells that PyTorch has no interface for."""

import atexit
import ctypes
import functools
import os
import traceback
from contextlib import contextmanager

_TELL = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_double)
_OBSERVE = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
_ROW = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p)

_call_sites = {}


def _path():
    return os.environ.get("ANYMPS_TORCH_KERNELS") or os.path.join(os.path.dirname(__file__), "libtorch_anymps_kernels.so")


@functools.cache
def load():
    import torch  # noqa: F401 (whose libraries it needs)

    library = ctypes.CDLL(_path())
    library.anymps_torch_set_cuda_aside.restype = ctypes.c_int
    library.anymps_torch_allocator.restype = ctypes.c_void_p
    library.anymps_torch_describe.restype = ctypes.c_char_p
    return library


@functools.cache
def _of_python():
    library = ctypes.PyDLL(_path())  # what makes objects of Python
    library.anymps_torch_graph.restype = ctypes.py_object
    library.anymps_torch_on_this_thread.restype = ctypes.py_object
    library.anymps_torch_on_this_thread.argtypes = [ctypes.py_object]
    return library


def graph(text):
    """The function of a graph (compiler.py writes the text): a list of tensors for a list of tensors."""
    return _of_python().anymps_torch_graph(text.encode())


def on_this_thread(run_backward):
    """The function that runs backward passes, as one that runs them on the thread that calls it."""
    return _of_python().anymps_torch_on_this_thread(run_backward)


def note_writes(tensors):
    """To be called before memory of these tensors is written by address."""
    for tensor in tensors:
        if tensor.device.type == "mps":
            load().anymps_torch_note_write(ctypes.c_void_p(tensor.untyped_storage()._cdata))


def set_cuda_aside():
    return load().anymps_torch_set_cuda_aside()


def transfers():
    """(count, bytes) of what crossed so far: to the device, to the host, within the device."""
    numbers = (ctypes.c_uint64 * 6)()
    load().anymps_torch_transfers(numbers)
    return {
        "to_device": (numbers[0], numbers[1]),
        "to_host": (numbers[2], numbers[3]),
        "within": (numbers[4], numbers[5]),
    }


@_OBSERVE
def _remember_call_site(op):
    # The frames above are PyTorch's own: the last one outside of it is where the program asked for the op.
    import torch

    inside = os.path.dirname(torch.__file__)
    for frame in reversed(traceback.extract_stack()[:-1]):
        if not frame.filename.startswith(inside):
            _call_sites[op.decode()] = f"{frame.filename}:{frame.lineno}"
            return


def observe_fallbacks():
    load().anymps_torch_observe_fallbacks(_remember_call_site)
    atexit.register(load().anymps_torch_observe_fallbacks, _OBSERVE())  # Python cannot be called any more


def fallbacks(reset=False):
    """What fell back to the CPU so far: a list of dicts (op, count, bytes, milliseconds, call_site), the longest first."""
    found = []

    @_TELL
    def tell(op, count, size, milliseconds):
        name = op.decode()
        found.append({"op": name, "count": count, "bytes": size, "milliseconds": milliseconds, "call_site": _call_sites.get(name)})

    load().anymps_torch_fallbacks(tell, int(reset))
    return sorted(found, key=lambda entry: -entry["milliseconds"])


def rows():
    """The table: (names, marks, body) of each row."""
    found = []

    @_ROW
    def tell(*row):
        found.append(tuple(text.decode() for text in row))

    load().anymps_torch_rows(tell)
    return found


@contextmanager
def strict(on=True):
    """Refuses inside what Apple's MPS refuses: tensors of float64, and ops that have no kernel there."""
    before = load().anymps_torch_strict()
    load().anymps_torch_set_strict(int(on))
    try:
        yield
    finally:
        load().anymps_torch_set_strict(before)


def time_calls(op, args, kwargs, calls):
    """Seconds that so many calls of an op (torch.ops.aten.mul.Tensor) take, one after the other, without Python between them."""
    import torch

    name, overload = op._schema.name, op._schema.overload_name
    return torch.ops.anymps.time_calls(name, overload, list(args), kwargs, calls)
