# SPDX-License-Identifier: Apache-2.0
"""paddle.linalg on the device, where Paddle itself knows CPUs and CUDA alone.

lstsq asks for the name of the current device, and refuses others; the op behind it goes where its tensors are. Of eig, the
gradient is complex, and Paddle makes a real one of it by code that it has for those two: here the matrix becomes complex
before."""

import functools
import sys

from .places import is_mps

COMPLEX = {"float32": "complex64", "float64": "complex128"}


def install(paddle):
    module = sys.modules["paddle.tensor.linalg"]
    lstsq, eig = module.lstsq, module.eig

    @functools.wraps(lstsq)
    def lstsq_anywhere(x, y, *args, **kwargs):
        if not paddle.in_dynamic_mode() or not is_mps(x.place):
            return lstsq(x, y, *args, **kwargs)
        with paddle.device.device_guard("cpu"):
            results = lstsq(x, y, *args, **kwargs)
        return tuple(result.to(x.place) for result in results)

    @functools.wraps(eig)
    def eig_anywhere(x, *args, **kwargs):
        wider = COMPLEX.get(str(getattr(x, "dtype", "")).removeprefix("paddle."))
        if wider and paddle.in_dynamic_mode() and is_mps(x.place) and not x.stop_gradient and paddle.is_grad_enabled():
            x = x.astype(wider)
        return eig(x, *args, **kwargs)

    _replace(paddle, "lstsq", lstsq, lstsq_anywhere)
    _replace(paddle, "eig", eig, eig_anywhere)


def _replace(paddle, name, before, after):
    for module in [*sys.modules.values(), paddle.Tensor]:
        if getattr(module, "__dict__", {}).get(name) is before:
            setattr(module, name, after)
