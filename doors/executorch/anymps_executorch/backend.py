# SPDX-License-Identifier: Apache-2.0
"""Makes `MPSBackend` known to the stock ExecuTorch runtime of this process (1.5.1 and 1.4.1).

    from anymps_executorch import backend
    backend.register()

Needs nothing but executorch itself: no torch is imported from here.
"""
import ctypes
import os
from pathlib import Path

NAME = "libanymps_executorch_backend.so"
_library = None


def find():
    """The delegate's library: ANYMPS_EXECUTORCH_BACKEND, else the one of the project's build."""
    chosen = os.environ.get("ANYMPS_EXECUTORCH_BACKEND")
    path = Path(chosen) if chosen else Path(__file__).resolve().parents[3] / "build" / "lib" / NAME
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: build it with `scripts/env executorch-runtime` and "
                                "`cmake --build build`, or set ANYMPS_EXECUTORCH_BACKEND")
    return path


def register(library=None):
    """Loads the delegate (once) and registers it in every registry that the process has by now."""
    global _library
    # The runtime must be there first: it holds the registry.
    from executorch.extension.pybindings import portable_lib

    if _library is None:
        _library = ctypes.CDLL(str(library or find()))
    if _library.anymps_executorch_register() != 0:
        raise RuntimeError("MPSBackend could not be registered; the reason is on stderr")
    return portable_lib
