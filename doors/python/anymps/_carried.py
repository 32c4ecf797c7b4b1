# SPDX-License-Identifier: Apache-2.0
"""The run-time libraries of C++, for a system that has none, or older ones: a wheel carries copies.

They are a last resort. There is one of each in a process, by name, and whoever is loaded after it gets the same one: the
system's may be newer than ours, and what needs a newer one would fail beside ours."""
import ctypes
import os
from pathlib import Path

_FOLDER = Path(__file__).parent / "carried"
_NAMES = ("libgcc_s.so.1", "libstdc++.so.6")


def _loaded(name):
    try:
        return bool(ctypes.CDLL(name, mode=os.RTLD_NOLOAD))
    except OSError:
        return False


def load(error):
    """Loads the copy of the library that the loader's error begins with: `libstdc++.so.6: cannot open …`, or
    `/lib/libstdc++.so.6: version … not found`. False if there is none, or if the process has such a library already."""
    name = os.path.basename(str(error).split(":")[0])
    if name not in _NAMES or not (_FOLDER / name).exists() or _loaded(name):
        return False
    try:
        ctypes.CDLL(str(_FOLDER / name))
    except OSError as other:  # it needs another one of them
        return load(other) and load(error)
    return True
