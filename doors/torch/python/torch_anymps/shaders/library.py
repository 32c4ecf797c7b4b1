# SPDX-License-Identifier: Apache-2.0
"""What compile_shader returns: a library of kernels, and kernels that are called with tensors and numbers."""

import ctypes
import hashlib
import math
import struct
import threading

import torch

from .compiler import cached, compiler
from .translate import translate

_SIMD_WIDTH = 32
_MOST_SHARED = 32768


# `Launch` of include/anymps_metal/runtime.h, without its buffers.
_SIZES = struct.Struct("=9Ii")


class _Entry(ctypes.Structure):
    """`Entry` of the same file."""


_Entry._fields_ = (
    ("name", ctypes.c_char_p),
    ("range", ctypes.c_void_p),
    ("thread", ctypes.c_void_p),
    ("buffers", ctypes.c_int),
    ("max_threads", ctypes.c_int),
    ("threadgroup_buffers", ctypes.c_int),
    ("shared_bytes", ctypes.POINTER(ctypes.c_long)),
    ("next", ctypes.POINTER(_Entry)),
)

# `Result` of runtime/worker.h.
_PROBLEMS = {
    1: "there is no memory for the threads of a threadgroup",
    2: "a thread needs more than 256 KiB for its own variables",
    3: "threadgroup memory exceeds the 32768 bytes that Apple's GPUs have",
    4: "a thread waits for others in a way that was not seen when the shader was compiled",
}

_lock = threading.Lock()
_runtime = None
_libraries = {}


def _load_runtime():
    global _runtime
    with _lock:
        if _runtime is None:
            tool = compiler()
            library = ctypes.CDLL(str(cached(f"runtime-{tool.identity}", tool.runtime)))
            library.anymps_shader_launch.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
            library.anymps_shader_launch.restype = ctypes.c_int
            _runtime = library
    return _runtime


def _load(source):
    """The entries of the compiled source, by name."""
    tool = compiler()
    key = hashlib.sha256(f"{tool.identity}\0{source}".encode()).hexdigest()
    if key not in _libraries:
        runtime = _load_runtime()
        path = cached(key, lambda output: tool.library(translate(tool.preprocess(source)), output))
        library = ctypes.CDLL(str(path))
        library.anymps_shader_load.argtypes = (ctypes.c_void_p,)
        library.anymps_shader_load.restype = ctypes.POINTER(_Entry)
        functions = ctypes.addressof(ctypes.c_char.in_dll(runtime, "anymps_shader_functions"))
        entries, entry = {}, library.anymps_shader_load(functions)
        while entry:
            entries[entry.contents.name.decode()] = entry.contents
            entry = entry.contents.next
        _libraries[key] = (entries, library)
    return _libraries[key][0]


class ShaderLibrary:
    """The kernels of one source, as attributes."""

    def __init__(self, source, device_type=None, before_launch=None):
        self._entries = _load(source)
        self._source = source
        self._device_type = device_type
        self._before_launch = before_launch
        self._kernels = {}

    def __getattr__(self, name):
        if name.startswith("_"):
            entry = self.__dict__.get("_entries", {}).get(name)
            if entry is None:
                raise AttributeError(name)
        kernel = self._kernels.get(name)
        if kernel is None:
            if name not in self._entries:
                raise RuntimeError(f"Failed to create function state object for: {name}")
            kernel = self._kernels[name] = MetalKernel(self, name, self._entries[name])
        return kernel

    def __dir__(self):
        return sorted(self._entries)

    @property
    def function_names(self):
        return sorted(self._entries)


def _double(values):
    return [float(v) for v in values]


def _wrapped(code, bits):
    """Integers of so many bits, cut off as C does it."""
    mask = (1 << bits) - 1

    def pack(values):
        return struct.pack(f"={len(values)}{code}", *(int(v) & mask for v in values))

    return pack


def _bfloat16(values):
    bits = torch.tensor(_double(values), dtype=torch.float32).to(torch.bfloat16).view(torch.int16)
    return struct.pack(f"={len(values)}h", *bits.tolist())


def _float16(values):
    bits = torch.tensor(_double(values), dtype=torch.float32).to(torch.float16).view(torch.int16)
    return struct.pack(f"={len(values)}h", *bits.tolist())


_CASTS = {
    "fp16": _float16,
    "bf16": _bfloat16,
    "int32": _wrapped("I", 32),
    "int16": _wrapped("H", 16),
    "int8": _wrapped("B", 8),
    "uint8": _wrapped("B", 8),
}


class MetalKernel:
    """`kernel(*arguments, threads=None, group_size=None, arg_casts=None)`, with upstream's rules."""

    def __init__(self, library, name, entry):
        self._library = library
        self._name = name
        self._entry = entry
        self._address = ctypes.addressof(entry)
        self._max_threads = entry.max_threads
        self._buffers = entry.buffers
        self._lacks_size = entry.threadgroup_buffers > 0
        self._launch = _load_runtime().anymps_shader_launch
        shared = self.static_thread_group_memory_length
        if shared > _MOST_SHARED:
            raise RuntimeError(
                f"Failed to created pipeline state object, error: Threadgroup memory size ({shared}) exceeds the maximum "
                f"threadgroup memory allowed ({_MOST_SHARED})"
            )

    @property
    def max_threads_per_threadgroup(self):
        return self._entry.max_threads

    @property
    def thread_execution_width(self):
        return _SIMD_WIDTH

    @property
    def static_thread_group_memory_length(self):
        return self._entry.shared_bytes[0]

    def __repr__(self):
        return f"<MetalKernel {self._name}>"

    def __call__(self, *args, threads=None, group_size=None, arg_casts=None, error_buf_idx=None):
        if arg_casts is not None and not isinstance(arg_casts, (str, dict)):
            raise RuntimeError(f"Unexpected caster arg type {type(arg_casts).__name__}")
        threads, group_size = _sizes(threads), _sizes(group_size)
        pointers, kept, tensors = [], [], []
        for at, arg in enumerate(args):
            if isinstance(arg, torch.Tensor):
                tensors.append(arg)
                pointers.append(self._pointer(arg))
                if threads is None:
                    threads = (arg.numel(),)
            else:
                cast = arg_casts.get(at) if isinstance(arg_casts, dict) else arg_casts
                pointers.append(_placed(self._constant(arg, cast, tensors), kept))
        errors = None
        if error_buf_idx is not None:
            errors = ErrorBuffer()
            pointers += [0] * (error_buf_idx + 1 - len(pointers))
            pointers[error_buf_idx] = errors.address
        if threads is None:
            raise RuntimeError("Number of threads is undefined or has wrong dimension")
        if group_size is not None and len(group_size) != len(threads):
            raise RuntimeError("size and group_size must have same number of dimensions")
        if len(pointers) < self._buffers:
            raise RuntimeError(f"kernel {self._name} takes {self._buffers} arguments, and {len(pointers)} were given")
        if self._lacks_size:
            raise RuntimeError(f"kernel {self._name} has [[threadgroup(n)]] arguments, whose length nothing sets")
        self._run(pointers, threads, group_size, tensors)
        if errors is not None:
            errors.check()

    def _run(self, pointers, threads, group_size, tensors):
        most = self._max_threads
        if group_size is None:
            group_size = (max(1, min(threads[0], most)) if len(threads) == 1 else most,)
        total = math.prod(group_size)
        if total > most:
            raise ValueError(f"Threadgroup size exceeds {most} limit")
        if min(group_size) <= 0:
            raise ValueError("Threadgroup size must be positive")
        if 0 in threads:
            return
        if max(threads) > 0xFFFFFFFF or min(threads) < 0:
            raise RuntimeError("threads must be between 0 and 2**32 - 1 in each dimension")
        if self._library._before_launch is not None:
            self._library._before_launch(tensors)
        x, y, z = (*threads, 1, 1)[:3]
        gx, gy, gz = (*group_size, 1, 1)[:3]
        groups = (-(-x // gx), -(-y // gy), -(-z // gz))
        sizes = _SIZES.pack(x, y, z, gx, gy, gz, *groups, torch.get_num_threads())
        problem = self._launch(self._address, struct.pack(f"={len(pointers)}Q", *pointers), sizes)
        if problem:
            raise RuntimeError(f"kernel {self._name}: {_PROBLEMS[problem]}")

    def _pointer(self, tensor):
        wanted = self._library._device_type
        if wanted is not None and tensor.device.type != wanted:
            if tensor.device.type != "cpu" or tensor.dim() != 0:
                raise RuntimeError(f"Passed {tensor.device.type.upper()} tensor to {wanted.upper()} op")
        return tensor.data_ptr()

    def _constant(self, arg, cast, tensors):
        """A number, or a list of numbers or of tensors, as the bytes that the kernel reads."""
        values = arg
        if isinstance(arg, (list, tuple)):
            if not arg:
                raise RuntimeError("Empty list/tuple can not be an argument to metal kernel")
            if isinstance(arg[0], torch.Tensor):
                tensors.extend(arg)
                return struct.pack(f"={len(arg)}Q", *map(self._pointer, arg))
        else:
            values = (arg,)
        if isinstance(values[0], int):
            pack = _pack_long
        elif isinstance(values[0], float):
            pack = _pack_float
        elif values is arg:
            raise RuntimeError("Unexpected argument types")
        else:
            raise RuntimeError("Unsupported argument type")
        if cast is not None:
            pack = _CASTS.get(cast)
            if pack is None:
                raise RuntimeError(f"Unsupported cast instruction {cast}")
        return pack(values)


def _placed(data, kept):
    """The address of a copy, aligned for the largest vector; with room behind it, where a kernel reads a wider type."""
    buffer = ctypes.create_string_buffer(len(data) + 128)
    kept.append(buffer)
    address = -(-ctypes.addressof(buffer) // 64) * 64
    ctypes.memmove(address, data, len(data))
    return address


def _pack_long(values):
    return struct.pack(f"={len(values)}q", *values)


def _pack_float(values):
    return bytes((ctypes.c_float * len(values))(*values))


def _sizes(value):
    if value is None:
        return None
    if isinstance(value, int):
        return (value,)
    value = tuple(int(v) for v in value)
    if not 0 < len(value) < 4:
        raise RuntimeError("Number of threads is undefined or has wrong dimension")
    return value


class ErrorBuffer:
    """What c10/metal/error.h writes messages into: a count, then 30 of file, function, text and line."""

    _MESSAGE = struct.Struct("=128s128s250s2xI")
    _COUNT = 30

    def __init__(self):
        self._buffer = ctypes.create_string_buffer(4 + self._COUNT * self._MESSAGE.size)
        self.address = ctypes.addressof(self._buffer)

    def check(self):
        (count,) = struct.unpack_from("=I", self._buffer)
        if count:
            file, function, text, line = (
                part.split(b"\0")[0].decode(errors="replace") if isinstance(part, bytes) else part
                for part in self._MESSAGE.unpack_from(self._buffer, 4)
            )
            raise RuntimeError(f"{file}:{line}: {function}: {text}")
