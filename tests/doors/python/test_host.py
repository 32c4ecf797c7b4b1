# SPDX-License-Identifier: Apache-2.0
"""The extension as a guest of a Python process: memory goes back, nothing waits for the interpreter's lock while it holds
it, no list is read past its end. What may hang or crash runs in a process of its own."""
import os
import subprocess
import sys
import textwrap

import pytest


def run_alone(code, **environment):
    """Runs the code in a process of its own; what hangs fails."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, **environment}, timeout=60,
                          capture_output=True, text=True)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_an_idle_program_gives_memory_back():
    run_alone("""
        import time, anymps
        anymps.empty((4 << 20,))
        anymps.empty((8,))
        assert anymps.memory_stats()["pooled"] >= 24 << 20, anymps.memory_stats()
        time.sleep(0.02)
        anymps.trim()
        assert anymps.memory_stats()["reserved"] == 0, anymps.memory_stats()
    """, MPS_MAX_BUFFER_AGE="10")
