# SPDX-License-Identifier: Apache-2.0
"""`anymps serve` finds the server beside itself and hands its arguments on."""
import shutil
import subprocess

import pytest

from tests.doors.cli.test_cli import ANYMPS, anymps

pytestmark = pytest.mark.skipif(not ANYMPS.with_name("anymps-server").exists(), reason="built without the server")


def test_help_is_the_servers():
    done = anymps("serve", "--help")
    assert done.returncode == 0
    for flag in ("--model-repository", "--model-control-mode", "--http-port", "--grpc-port", "--metrics-port", "--load-model",
                 "--strict-readiness", "--exit-timeout-secs", "--log-verbose", "--api-key", "--cache-config"):
        assert flag in done.stdout


@pytest.mark.parametrize("args, words", [
    ((), "--model-repository is required"),
    (("--model-repository=x", "--fly"), "--fly"),
    (("--model-repository=x", "--model-control-mode=often"), "--model-control-mode"),
    (("--model-repository=x", "--grpc-use-ssl"), "--grpc-server-cert"),
    (("--model-repository=x", "--load-model=m"), "explicit"),
])
def test_wrong_usage(args, words):
    done = anymps("serve", *args)
    assert done.returncode == 2 and words in done.stderr


def test_a_repository_that_is_not_there():
    done = anymps("serve", "--model-repository=/no/such/folder")
    assert done.returncode == 1 and "/no/such/folder" in done.stderr


def test_without_the_server(tmp_path):
    shutil.copy(ANYMPS, tmp_path / "anymps")
    done = subprocess.run([tmp_path / "anymps", "serve"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "anymps-server" in done.stderr


def test_completion_knows_the_flags():
    script = anymps("completion", "bash").stdout + """
COMP_WORDS=(anymps serve --grpc-po); COMP_CWORD=2; _anymps; echo "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60,
                          env={"PATH": f"{ANYMPS.parent}:/usr/bin:/bin"})
    assert done.stdout.split() == ["--grpc-port"]
