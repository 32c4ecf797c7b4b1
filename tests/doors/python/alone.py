# SPDX-License-Identifier: Apache-2.0
"""For tests of what may hang or crash."""
import os
import subprocess
import sys
import textwrap


def run_alone(code, **environment):
    """Runs the code in a process of its own; what hangs fails."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, **environment}, timeout=60,
                          capture_output=True, text=True)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
