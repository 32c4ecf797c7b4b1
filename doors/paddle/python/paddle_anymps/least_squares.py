# SPDX-License-Identifier: Apache-2.0
"""paddle.linalg.lstsq on the device. Paddle's function asks for the name of the current device, and refuses any that is not a
CPU or of CUDA; the op behind it goes where its tensors are."""

import functools
import sys

from .places import is_mps


def allow_least_squares(paddle):
    lstsq = sys.modules["paddle.tensor.linalg"].lstsq

    @functools.wraps(lstsq)
    def anywhere(x, y, *args, **kwargs):
        if not paddle.in_dynamic_mode() or not is_mps(x.place):
            return lstsq(x, y, *args, **kwargs)
        with paddle.device.device_guard("cpu"):
            results = lstsq(x, y, *args, **kwargs)
        return tuple(result.to(x.place) for result in results)

    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get("lstsq") is lstsq:
            module.lstsq = anywhere
    paddle.Tensor.lstsq = anywhere
