# SPDX-License-Identifier: Apache-2.0
"""`place=` for the functions that create tensors, as `paddle.to_tensor` has it: paddle.randn([2, 3], place="mps")."""

import functools
import inspect

from paddle.base import framework

# The functions of `paddle` whose result is not made of a tensor that has a place already, and those that make one like it.
NAMES = (
    "arange empty empty_like eye full full_like linspace log_normal logspace normal ones ones_like rand rand_like randint"
    " randint_like randn randn_like randperm standard_normal tril_indices triu_indices uniform zeros zeros_like"
).split()


def add_place(paddle):
    for name in NAMES:
        function = getattr(paddle, name, None)
        if function is None or "place" in inspect.signature(function).parameters:
            continue
        replacement = _with_place(paddle, function)
        for module in (paddle, paddle.tensor, paddle.tensor.creation, paddle.tensor.random):
            if getattr(module, name, None) is function:
                setattr(module, name, replacement)


def _with_place(paddle, function):
    takes_device = "device" in inspect.signature(function).parameters

    @functools.wraps(function)
    def create(*args, place=None, **kwargs):
        if place is None:
            return function(*args, **kwargs)
        place = framework._get_paddle_place(place)
        if takes_device:
            return function(*args, device=place, **kwargs)
        with paddle.device.device_guard(place):
            return function(*args, **kwargs)

    return create
