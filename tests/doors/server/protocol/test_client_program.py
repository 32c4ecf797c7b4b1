# SPDX-License-Identifier: Apache-2.0
"""backends/metal_mps/test/test_client.py against both servers and over both protocols."""
import os
import subprocess
import sys

import pytest

from ..servers import KINDS, ROOT, VENVS, free_ports

PROGRAM = ROOT / "backends" / "metal_mps" / "test" / "test_client.py"


def run(*args):
    return subprocess.run([sys.executable, PROGRAM.name, *args], cwd=PROGRAM.parent, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("kind", KINDS)
def test_passes(kind, protocol, pairs):
    server = pairs["open"].client(kind).server
    done = run("--protocol", protocol, "--url", getattr(server, protocol))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert done.stdout.splitlines()[-1].endswith(" 0 failed")
    assert "ok   a batch of two is its two rows" in done.stdout


def test_says_when_there_is_no_server():
    done = run("--url", f"127.0.0.1:{free_ports(1)[0]}")
    assert done.returncode != 0
    assert "no server answers" in done.stderr


def test_fails_for_a_model_that_is_not_there(pairs):
    done = run("--url", pairs["open"].client("anymps").server.http, "--model", "nobody")
    assert done.returncode == 1
    assert "FAIL" in done.stdout


@pytest.mark.parametrize("venvs, says", [(VENVS, "no server answers"), ("/nowhere", "scripts/env triton")])
def test_any_python_will_do(venvs, says):
    """One without the clients (-S: without its packages) hands over to the one that has them, or says how to get it."""
    done = subprocess.run([sys.executable, "-S", PROGRAM.name, "--url", f"127.0.0.1:{free_ports(1)[0]}"], cwd=PROGRAM.parent, capture_output=True,
                          text=True, timeout=120, env={**os.environ, "ANYMPS_VENV_DIR": str(venvs)})
    assert done.returncode != 0 and says in done.stderr and "Traceback" not in done.stderr, done.stderr
