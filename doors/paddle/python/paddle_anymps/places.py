# SPDX-License-Identifier: Apache-2.0
"""MPSPlace, and what may stand for a device of kind `mps`: 0, "mps", "mps:0", a place."""

from paddle.base import core, framework

DEVICE = "mps"


def is_available():
    return device_count() > 0


def device_count():
    return core.get_custom_device_count(DEVICE) if DEVICE in core.get_all_custom_device_type() else 0


def is_mps(place):
    """Whether it is a place on an mps device: one that was made, or one that a tensor has."""
    if isinstance(place, core.CustomPlace):
        return place.get_device_type() == DEVICE
    return isinstance(place, core.Place) and place.is_custom_place() and place.custom_device_type() == DEVICE


class _PlaceType(type):
    def __call__(cls, device_id=0):
        return core.CustomPlace(DEVICE, checked(device_id))

    def __instancecheck__(cls, place):
        return is_mps(place)


class MPSPlace(metaclass=_PlaceType):
    """The place of an mps device: `paddle.MPSPlace(0)`. To Paddle it is a CustomPlace."""


def checked(index):
    """The index, if there is such a device. Paddle itself ends the process where there is none."""
    if isinstance(index, bool) or not isinstance(index, int):
        raise TypeError(f"the index of an mps device is an int, not {type(index).__name__}")
    if not 0 <= index < device_count():
        raise ValueError(f"there is no device mps:{index}: the number of mps devices is {device_count()}")
    return index


def names_mps(device):
    return isinstance(device, str) and device.strip().partition(":")[0] == DEVICE


def index_of(device=None):
    """The index that `device` means; None: the current one, or 0 while Paddle's current device is of another kind."""
    if device is None:
        place = framework._current_expected_place_()
        return place.get_device_id() if is_mps(place) else 0
    if names_mps(device):
        digits = device.strip().partition(":")[2]
        if ":" in device and not digits.isdigit():
            raise ValueError(f"{device!r} is no device: write 'mps' or 'mps:0'")
        return checked(int(digits or 0))
    if isinstance(device, core.CustomPlace) and is_mps(device):
        return checked(device.get_device_id())
    if is_mps(device):
        return checked(device.custom_device_id())
    if isinstance(device, int):
        return checked(device)
    raise ValueError(f"{device!r} is no mps device: write 0, 'mps', 'mps:0' or paddle.MPSPlace(0)")
