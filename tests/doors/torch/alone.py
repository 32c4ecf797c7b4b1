# SPDX-License-Identifier: Apache-2.0
"""Runs a program in a fresh Python, where a crash, a hang or a variable of the environment harms no other test."""
import os
import subprocess
import sys
import textwrap


def run_alone(program, *, timeout=120, path=(), **environment):
    """What the program prints; fails if it does not end by itself with status 0."""
    settings = {**os.environ, **environment}
    if path:
        settings["PYTHONPATH"] = os.pathsep.join([*map(str, path), settings.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=settings, timeout=timeout, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, f"ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout.strip()
