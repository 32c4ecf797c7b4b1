# SPDX-License-Identifier: Apache-2.0
"""Standard output or error that is closed or full: no signal, and lost output is not success."""
import os
import subprocess

import pytest

from tests.doors.cli.test_cli import ANYMPS, ROOT

MODEL = ROOT / "examples" / "models" / "softmax.onnx"
PRINTING = [["ops"], ["ops", "softmax"], ["ops", "--json"], ["doctor"], ["doctor", "--json"], ["inspect", MODEL], ["inspect", MODEL, "--graph"],
            ["completion", "bash"], ["run", MODEL, "--random-inputs"], ["run", MODEL, "--random-inputs", "--json"], ["bench", MODEL, "-n", "1"],
            ["profile", MODEL, "-n", "1"], ["--help"], ["run", "--help"], ["--version"]]
WRITING = [["convert", MODEL, "-o", "out.mps"], ["compile", MODEL, "-o", "out.mps"], ["run", MODEL, "--random-inputs", "-o", "."]]


def shell(args, redirection, cwd, env=None):
    command = " ".join(f"'{word}'" for word in [ANYMPS, *args])
    return subprocess.run(["bash", "-c", f"{command} {redirection}"], capture_output=True, text=True, cwd=cwd, timeout=120, env=env)


def ids(args):
    return " ".join(str(getattr(word, "name", word)) for word in args)


@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
@pytest.mark.parametrize("args", PRINTING + WRITING, ids=ids)
def test_output_that_gets_lost_is_a_failure(args, redirection, tmp_path):
    done = shell(args, redirection, tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("anymps: ") and done.stderr.count("\n") == 1, (done.returncode, done.stderr)


@pytest.mark.parametrize("args", WRITING, ids=ids)
def test_a_closed_stream_is_no_file(args, tmp_path):
    """A file that is opened gets the lowest free number: it must not be that of standard output."""
    whole = shell(args, "", tmp_path)
    assert whole.returncode == 0, whole.stderr
    (name,) = os.listdir(tmp_path)
    right = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    shell(args, "<&- >&- 2>&-", tmp_path)
    assert (tmp_path / name).read_bytes() == right and os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "<&- 2>&-"])
def test_without_standard_error(redirection, tmp_path):
    assert shell(["run", MODEL, "--random-inputs"], redirection, tmp_path).returncode == 0
    assert shell(["run", MODEL], redirection, tmp_path).returncode == 1
    assert shell(["run", MODEL, "--fly"], redirection, tmp_path).returncode == 2
    loud = {**os.environ, "ANYMPS_VERBOSE": "dispatch,cache", "ANYMPS_DUMP": "passes"}
    done = shell(["run", MODEL, "--random-inputs"], redirection, tmp_path, loud)
    assert done.returncode == 0 and "y: f32[1,4]" in done.stdout
    done = shell(["profile", MODEL, "--trace", "trace.json"], redirection, tmp_path)
    assert done.returncode == 0 and (tmp_path / "trace.json").exists()


def test_a_reader_that_goes_away(tmp_path):
    """As other tools do: the signal of a broken pipe, and nothing on standard error."""
    done = shell(["ops", "--json"], "| head -c 10; echo ${PIPESTATUS[0]} >&2", tmp_path)
    assert done.stderr.strip() == "141"


@pytest.mark.skipif(not (ROOT / "build" / "bin" / "anymps-server").exists(), reason="the server is not built")
@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
def test_the_server_too(redirection, tmp_path):
    lost = shell(["serve", "--help"], redirection, tmp_path)
    assert lost.returncode == 1 and "standard output cannot be written" in lost.stderr, (lost.returncode, lost.stderr)
    assert shell(["serve", "--model-repository", tmp_path / "none"], "2" + redirection, tmp_path).returncode == 1
