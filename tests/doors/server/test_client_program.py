# SPDX-License-Identifier: Apache-2.0
"""doors/triton/test/test_client.py against both servers and over both protocols."""
import subprocess
import sys

import pytest

from .servers import KINDS, ROOT, free_ports

PROGRAM = ROOT / "doors" / "triton" / "test" / "test_client.py"


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
