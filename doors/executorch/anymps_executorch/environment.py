# SPDX-License-Identifier: Apache-2.0
"""Finds the Python that has executorch: this one, or that of .venvs/executorch, with which the command starts anew."""

import importlib.util
import os
import pathlib
import sys

DOOR = pathlib.Path(__file__).resolve().parents[1]
ROOT = DOOR.parents[1]
MARK = "ANYMPS_EXECUTORCH_STARTED"


def venv_python():
    """The interpreter of the exporter's environment, which need not exist."""
    return pathlib.Path(os.environ.get("ANYMPS_VENV_DIR", ROOT / ".venvs")) / "executorch" / "bin" / "python"


def has_exporter():
    try:
        return importlib.util.find_spec("executorch.backends.apple.mps") is not None
    except ImportError:
        return False


def ensure_executorch(module):
    """Returns if executorch with the MPS exporter can be imported; else runs `module` with the Python that has it."""
    if has_exporter():
        return
    python = venv_python()
    if not python.exists() or os.environ.get(MARK):
        sys.exit(
            f"{module} needs executorch 1.4.1, which {sys.executable} does not have.\n"
            f"Install it with: scripts/env executorch   (into {python.parents[1]})"
        )
    path = os.pathsep.join(filter(None, [str(DOOR), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, MARK: "1", "PYTHONPATH": path}
    sys.stdout.flush()
    os.execve(python, [str(python), "-m", module, *sys.argv[1:]], environment)
