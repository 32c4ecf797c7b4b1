# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's Python code for mps expects of a build with Metal, and the wheel for Linux lacks."""

import atexit
import json
import os
import sys

from . import native


def install(torch):
    torch._C._has_mps = True
    torch.backends.mps.is_available.cache_clear()
    torch.mps._is_in_bad_fork = lambda: False  # a forked child computes with what its parent has made
    _add_functions(torch)
    _add_streams(torch)
    _add_storage(torch)
    _add_random_states(torch)
    _add_default_backend(torch)
    _add_engine(torch)
    _sum_as_the_cpu(torch)
    native.observe_fallbacks()
    if report := os.environ.get("ANYMPS_FALLBACK_REPORT"):
        atexit.register(_print_report, report)
    if wanted := _log_options():
        atexit.register(_print_statistics, wanted)


def _add_functions(torch):
    functions = {
        "_mps_get_name": lambda: native.load().anymps_torch_describe().decode(),
        "_mps_get_core_count": lambda: native.load().anymps_torch_cores(),
        "_mps_compileShader": _compile_shader,
        "_mps_loadMetalllib": _no_metallib,
        "_mps_loadMetallibFromPath": _no_metallib,
        "_mps_host_alias_storage": lambda storage: torch.ops.anymps.host_alias(_bytes_of(torch, storage)).untyped_storage(),
        "_mps_isCaptureEnabled": lambda: False,
        "_mps_isCapturing": lambda: False,
        "_mps_startCapture": _no_capture,
        "_mps_stopCapture": _no_capture,
    }
    for name, function in functions.items():
        if not hasattr(torch._C, name):
            setattr(torch._C, name, function)


def _compile_shader(source):
    from .shaders import compile_shader

    return compile_shader(source, device_type="mps", before_launch=native.note_writes)


def _bytes_of(torch, storage):
    return torch.empty(0, dtype=torch.uint8, device="mps").set_(storage)


def _no_metallib(*_):
    raise RuntimeError("a metallib holds machine code of Apple's GPUs: give the source to torch.mps.compile_shader")


def _no_capture(*_):
    raise RuntimeError("Metal capture is not enabled: there is no Metal here")


def _add_streams(torch):
    """Calls are done when they return, so a stream is a number."""
    import threading

    from torch.mps import streams

    current = threading.local()

    class Base:
        def __init__(self, stream_id=0, **_):
            self._id = stream_id

        @property
        def stream_id(self):
            return self._id

        @property
        def device(self):
            return torch.device("mps", 0)

        def synchronize(self):
            torch.mps.synchronize()

        def query(self):
            return True

        def __eq__(self, other):
            return isinstance(other, Base) and other._id == self._id

        def __hash__(self):
            return hash(self._id)

    last = iter(range(1, sys.maxsize))

    class Stream(Base):
        __doc__ = streams.Stream.__doc__

        def __init__(self, stream_id=None, **options):
            super().__init__(next(last) if stream_id is None else stream_id, **options)

        def __repr__(self):
            return f"<torch.mps.Stream stream_id={self.stream_id}>"

    torch._C._MPSStreamBase = Base
    torch._C._mps_getCurrentStream = lambda: getattr(current, "stream", None) or Base(0)
    torch._C._mps_setStream = lambda stream: setattr(current, "stream", stream)
    for module in (streams, torch.mps):
        if hasattr(module, "Stream"):
            module.Stream = Stream


def _add_random_states(torch):
    """torch.utils.checkpoint keeps the random numbers of a device whose module says that it is in use, and enters the device first:
    without them a dropout draws others when its gradient is computed."""

    class device:
        """The device within a `with`. There is one, so that nothing changes."""

        def __init__(self, device):
            self.device = device

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

    if not hasattr(torch.mps, "device"):
        torch.mps.device = device
    torch.mps._initialized = True


def _add_default_backend(torch):
    """torch.compile without a backend means inductor, which would write Metal for tensors of mps: those graphs come here."""
    inductor = torch._TorchCompileInductorWrapper
    call = inductor.__call__

    def called(self, model, inputs):
        if any(isinstance(value, torch.Tensor) and value.device.type == "mps" for value in inputs):
            from .dynamo import anymps

            return anymps(model, inputs)
        return call(self, model, inputs)

    inductor.__call__ = called


def _add_engine(torch):
    """A backward pass computes on the thread that asks for it, as the CPU's does. PyTorch would hand it to a thread of the device,
    which takes longer than the gradients of a small tensor; calls are done when they return, so nothing is gained by that."""
    variable = torch.autograd.Variable

    class Engine(type(variable._execution_engine)):
        pass

    engine = Engine()
    engine.run_backward = native.on_this_thread(engine.run_backward)
    variable._execution_engine = engine


def _sum_as_the_cpu(torch):
    """linear_cross_entropy chooses by the device in which type it sums, unless it is told, and knows half types in f32 for the CPU
    and CUDA alone. It is right here too: products of half types are summed in f32."""
    options = torch.nn.LinearCrossEntropyOptions
    adjust = options._adjust

    def adjusted(self, *args, device=None, **others):
        if device is not None and device.type == "mps":
            device = torch.device("cpu")
        return adjust(self, *args, device=device, **others)

    options._adjust = adjusted


def _add_storage(torch):
    """UntypedStorage knows the devices that PyTorch was compiled for."""
    kind = torch.UntypedStorage
    new, resize = kind.__new__, kind.resize_
    allocator = native.load().anymps_torch_allocator()

    def made(cls, *args, device=None, **options):
        if device is None:
            return new(cls, *args, **options)
        if torch.device(device).type != "mps":
            return new(cls, *args, device=device, **options)
        if args and not isinstance(args[0], int):
            return torch.tensor(args[0], dtype=torch.uint8, device="mps").untyped_storage()
        return new(cls, *args, allocator=allocator, **options)

    def resized(self, size):
        if self.device.type != "mps":
            return resize(self, size)
        torch.ops.anymps.resize_storage(_bytes_of(torch, self), size)
        return self

    kind.__new__ = staticmethod(made)
    kind.resize_ = resized


# Bits of PYTORCH_MPS_LOG_PROFILE_INFO that mean something here (LogOptions of PyTorch's MPSProfiler.h).
_ALL_STATISTICS, _COPY_STATISTICS, _FALLBACK_STATISTICS = 1 << 3, 1 << 5, 1 << 6


def _log_options():
    try:
        return int(os.environ.get("PYTORCH_MPS_LOG_PROFILE_INFO") or "0", 0)
    except ValueError:
        return 0


def _print_statistics(wanted):
    if wanted & (_ALL_STATISTICS | _COPY_STATISTICS):
        for way, (count, size) in native.transfers().items():
            print(f"torch_anymps: copies {way.replace('_', ' ')}: {count}, {size:,} bytes", file=sys.stderr)
    if wanted & (_ALL_STATISTICS | _FALLBACK_STATISTICS):
        _print_report("stderr")


def _print_report(where):
    entries = native.fallbacks()
    if where not in ("1", "stderr"):
        with open(where, "w") as file:
            json.dump(entries, file, indent=2)
        return
    if not entries:
        print("torch_anymps: nothing fell back to the CPU", file=sys.stderr)
        return
    print("torch_anymps: fell back to the CPU", file=sys.stderr)
    for entry in entries:
        print(
            f"  {entry['op']}: {entry['count']} times, {entry['bytes']:,} bytes, {entry['milliseconds']:.2f} ms"
            + (f", first at {entry['call_site']}" if entry["call_site"] else ""),
            file=sys.stderr,
        )
