# SPDX-License-Identifier: Apache-2.0
"""The C++ runner, where it is built: how long a program takes there, and whether it verifies its bundle."""

import os
import re
import subprocess

from .environment import DOOR, ROOT

NAME = "mps_executor_runner"


def path():
    """The runner's path, or None."""
    places = (
        os.environ.get("ANYMPS_EXECUTOR_RUNNER"),
        ROOT / "build" / "bin" / NAME,
        DOOR / "cmake-out" / "examples" / "apple" / "mps" / NAME,
    )
    return next((str(p) for p in places if p and os.access(p, os.X_OK)), None)


def run(program, *options):
    """The finished process of the runner, or None where there is no runner."""
    if not (found := path()):
        return None
    command = [found, f"--model_path={program}", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def is_bundle(program):
    with open(program, "rb") as file:
        return file.read(8)[4:] == b"BP08"


def average_milliseconds(program, runs):
    options = ["--bundled_program"] if is_bundle(program) else []
    options += ["--profile", f"--etdump_path={os.devnull}", "--print_output=false"]
    process = run(program, f"--num_runs={runs}", *options)
    found = process and re.search(r"Average inference time: ([0-9.]+)", process.stdout + process.stderr)
    return float(found[1]) if found else None


def verifies(program, runs=1, tolerance=None):
    """None without a runner, else (whether the bundle's outputs came in every run, what the runner says)."""
    options = [f"--rtol={tolerance}", f"--atol={tolerance}"] if tolerance else []
    options += ["--bundled_program", f"--num_runs={runs}", "--skip_warmup", "--print_output=false"]
    process = run(program, *options)
    if process is None:
        return None
    done = "Model verified successfully." in process.stdout + process.stderr
    said = process.stderr.strip() or f"exit status {process.returncode}"
    return process.returncode == 0 and done, "Model verified successfully." if done else said
