# SPDX-License-Identifier: Apache-2.0
"""Adds `paddle.mps` and its like to an imported Paddle. Where the plug-in was refused there is nothing to add:
`paddle.is_compiled_with_mps()` is False, and Paddle is as it was."""

import functools
import os
import sys


def install(paddle):
    from paddle.base import core, framework

    from . import collectives, creation, linalg, mps, places

    def is_compiled_with_mps():
        """Whether this Paddle has the device `mps`."""
        return places.DEVICE in core.get_all_custom_device_type()

    for module in (paddle, paddle.device, framework, core):
        module.is_compiled_with_mps = is_compiled_with_mps
    paddle.mps = sys.modules["paddle.mps"] = mps
    mps.__name__ = "paddle.mps"
    if not is_compiled_with_mps():
        return
    for module in (paddle, paddle.device, paddle.base, paddle.framework, framework, core):
        module.MPSPlace = places.MPSPlace
    creation.add_place(paddle)
    _check_indices(paddle, framework)
    _add_device_functions(paddle)
    _allow_bfloat16()
    collectives.allow_broadcasts()
    linalg.install(paddle)
    paddle.Tensor.mps = _tensor_mps
    if "FLAGS_auto_growth_chunk_size_in_mb" not in os.environ:
        # Paddle asks for memory in pieces of the size of each tensor unless told otherwise: with shapes that change, every new
        # one would need a new piece.
        paddle.set_flags({"FLAGS_auto_growth_chunk_size_in_mb": 16})


def _tensor_mps(self, device_id=None, blocking=True):
    """A copy of the tensor on an mps device, or the tensor itself if it is there."""
    from .places import MPSPlace, index_of, is_mps

    if device_id is None and is_mps(self.place):
        return self
    place = MPSPlace(index_of(device_id))
    return self if self.place._equals(place) else self._copy_to(place, blocking)


def _allow_bfloat16():
    """paddle.amp knows by name which custom devices have bfloat16."""
    from .places import is_mps

    auto_cast = sys.modules["paddle.amp.auto_cast"]  # the module; paddle.amp has a function of that name

    by_name = auto_cast._is_custom_device_bfloat16_supported

    @functools.wraps(by_name)
    def supported():
        return is_mps(auto_cast._current_expected_place()) or by_name()

    auto_cast._is_custom_device_bfloat16_supported = supported


def _check_indices(paddle, framework):
    """Paddle ends the process when a string names a custom device that does not exist: that becomes an error."""
    from . import places

    inner = paddle.device.set_device.__globals__
    for namespace, name in ((inner, "_convert_to_place"), (framework.__dict__, "_get_paddle_place")):
        convert = namespace[name]

        @functools.wraps(convert)
        def checked(device, convert=convert):
            if places.names_mps(device):
                device = places.MPSPlace(places.index_of(device))
            return convert(device)

        for module in list(sys.modules.values()):
            if getattr(module, "__dict__", {}).get(name) is convert:
                setattr(module, name, checked)
        namespace[name] = checked


def _add_device_functions(paddle):
    """paddle.device.memory_allocated("mps") and the like. A Paddle for CPUs has them for CPUs alone, or not at all, and
    answers as before when it is not asked about an mps device."""
    from paddle.base import core, framework

    from . import mps, places
    from .places import is_mps, names_mps

    def about_mps(device):
        if device is None or isinstance(device, int):
            return is_mps(framework._current_expected_place_())
        return names_mps(device) or is_mps(device)

    def choose(name, for_mps, before):
        def chosen(*args, **kwargs):
            device = kwargs.get("device", args[-1] if args and name != "manual_seed" else None)
            if name == "set_rng_state" and "device" not in kwargs:
                device = args[1] if len(args) > 1 else None
            if about_mps(device):
                return for_mps(*args, **kwargs)
            if before is None:
                raise ValueError(f"paddle.device.{name} needs a device: this PaddlePaddle has none but the CPU and mps")
            return before(*args, **kwargs)

        return functools.wraps(for_mps)(chosen)

    def create_stream(device_id=None, priority=2, device_type=None, blocking=False):
        return core.CustomDeviceStream(device_type or places.DEVICE, device_id or 0, priority, blocking=blocking)

    def create_event(enable_timing=False, blocking=False, interprocess=False, device_type=None, device_id=0):
        return core.CustomDeviceEvent(device_type or places.DEVICE, device_id or 0, enable_timing, blocking, interprocess)

    inner = paddle.device.set_device.__globals__
    names = [name for name in mps.__all__ if "memory" in name or "rng_state" in name] + ["manual_seed", "device_count"]
    added = {name: choose(name, getattr(mps, name), inner.get(name)) for name in names}
    added["empty_cache"] = mps.empty_cache
    added["_get_device_properties"] = mps.get_device_properties
    added["_create_stream_base"] = create_stream
    added["_create_event_base"] = create_event
    inner.update(added)
    vars(paddle.device).update(added)
