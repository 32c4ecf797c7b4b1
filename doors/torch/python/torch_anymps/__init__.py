# SPDX-License-Identifier: Apache-2.0
"""PyTorch's device mps on any machine, computed by AnyMPS.

PyTorch loads this package by itself: `import torch` is all that a program needs.
"""

from .loading import autoload

__all__ = ["autoload", "fallbacks", "strict", "transfers"]


def __getattr__(name):
    if name in ("fallbacks", "transfers", "strict"):
        from . import native

        return getattr(native, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
