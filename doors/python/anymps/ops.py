# SPDX-License-Identifier: Apache-2.0
"""All ops as functions: `anymps.ops.add(x, y)`.

Given arrays (numpy, lists, anything with DLPack, `anymps.Tensor`) they compute at once; given values of a graph they
add a node. `help(anymps.ops.softmax)` says what an op takes."""
from . import _ops

__all__ = []
for _record in _ops.records():
    _function = _ops.make_function(_record)
    globals()[_function.__name__] = _function
    __all__.append(_function.__name__)
del _record, _function
