# SPDX-License-Identifier: Apache-2.0
"""The device `mps` on any machine, computed by AnyMPS. Functions take the device as an index, as "mps:0" or as a place;
without one they mean the current device."""

import dataclasses

import paddle
from paddle.base import core

from . import native
from .places import DEVICE, checked, device_count, index_of, is_available

__all__ = [
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "device_count",
    "empty_cache",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "set_device",
    "set_rng_state",
    "stream_guard",
    "synchronize",
]


def set_device(device):
    """Makes an mps device the one that Paddle computes on."""
    return paddle.device.set_device(f"{DEVICE}:{index_of(device)}")


def current_device():
    """The index of the current mps device; 0 while Paddle's current device is of another kind."""
    return index_of()


def synchronize(device=None):
    """Waits until everything that was queued on the device is done."""
    core._synchronize_custom_device(DEVICE, checked(index_of(device)))


# ---- Properties


@dataclasses.dataclass(frozen=True)
class MPSDeviceProperties:
    name: str
    total_memory: int  # bytes that the device may use in all
    multi_processor_count: int  # threads that compute
    major: int = 1
    minor: int = 0


def get_device_properties(device=None):
    index = checked(index_of(device))
    total, _, threads = native.memory(index)
    return MPSDeviceProperties(name=native.describe(index), total_memory=total, multi_processor_count=threads)


def get_device_name(device=None):
    return native.describe(checked(index_of(device)))


# ---- Memory


def memory_allocated(device=None):
    """Bytes that tensors on the device use."""
    return core.device_memory_stat_current_value("Allocated", checked(index_of(device)))


def memory_reserved(device=None):
    """Bytes that Paddle holds for tensors on the device, in use or not."""
    return core.device_memory_stat_current_value("Reserved", checked(index_of(device)))


def max_memory_allocated(device=None):
    return core.device_memory_stat_peak_value("Allocated", checked(index_of(device)))


def max_memory_reserved(device=None):
    return core.device_memory_stat_peak_value("Reserved", checked(index_of(device)))


def reset_max_memory_allocated(device=None):
    core.device_memory_stat_reset_peak_value("Allocated", checked(index_of(device)))


def reset_max_memory_reserved(device=None):
    core.device_memory_stat_reset_peak_value("Reserved", checked(index_of(device)))


def empty_cache():
    """Gives memory that nothing uses back to the system, on all devices."""
    core.device_empty_cache()
    native.empty_cache()


# ---- Random numbers


def _generator(device=None):
    return core.default_custom_device_generator(core.CustomPlace(DEVICE, checked(index_of(device))))


def manual_seed(seed):
    """Seeds the current mps device."""
    _generator().manual_seed(seed)


def manual_seed_all(seed):
    for index in range(device_count()):
        _generator(index).manual_seed(seed)


def get_rng_state(device=None):
    return _generator(device).get_state()


def set_rng_state(new_state, device=None):
    _generator(device).set_state(new_state)


# ---- Streams


class Stream(paddle.device.Stream):
    """A queue of work on an mps device. Kernels compute when they are called, in the order of the calls."""

    def __init__(self, device=None, priority=2, stream_base=None):
        place = core.CustomPlace(DEVICE, checked(index_of(device)))
        super().__init__(place, priority, stream_base or core.CustomDeviceStream(place, priority))

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event


class Event(paddle.device.Event):
    """A point in the work of a stream, which can be waited for and timed."""

    def __init__(self, enable_timing=True, blocking=False, interprocess=False, device=None):
        if interprocess:
            raise NotImplementedError("events of mps devices are not shared between processes")
        self.device = core.CustomPlace(DEVICE, checked(index_of(device)))
        self.enable_timing = enable_timing
        self.event_base = core.CustomDeviceEvent(self.device, enable_timing, blocking, interprocess)

    def elapsed_time(self, end_event):
        """Milliseconds from this event to `end_event`; waits for both."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("both events must be made with enable_timing=True")
        milliseconds = native.elapsed_time(self.event_base, end_event.event_base)
        if milliseconds != milliseconds:
            raise RuntimeError("both events must be recorded before the time between them is known")
        return milliseconds


def current_stream(device=None):
    return Stream(device, stream_base=core._get_current_custom_device_stream(DEVICE, checked(index_of(device))))


stream_guard = paddle.device.stream_guard
