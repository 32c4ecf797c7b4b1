# SPDX-License-Identifier: Apache-2.0
"""What programs and surroundings that mean no good can reach: the bounds that the guide's threat model names."""
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

import pytest
from door import BUNDLES, ROOT, RUNNER, Bundle, runner

pytestmark = pytest.mark.skipif(not RUNNER.exists(), reason="build/bin/mps_executor_runner is not built")
ANYMPS = ROOT / "build" / "bin" / "anymps"
needs_anymps = pytest.mark.skipif(not ANYMPS.exists(), reason="build/bin/anymps is not built")
CONV = BUNDLES / "kinds" / "MPSConv2D_f32.pte"
LARGE = sorted((BUNDLES / "large").glob("*.pte"))
GIGABYTE = 1 << 30

# Runs a command and tells its status, the most memory that it had, and what it said.
MEASURE = """
import resource, subprocess, sys
limit = int(sys.argv[1])
done = subprocess.run(sys.argv[2:], capture_output=True, text=True, errors="replace",
                      preexec_fn=lambda: limit and resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
print(done.stderr)
"""


def measure(*command, limit=0):
    """(status, bytes of memory at the most, stderr)"""
    done = subprocess.run([sys.executable, "-c", MEASURE, str(limit), *map(str, command)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "ANYMPS_NUM_THREADS": "1"})
    first, _, said = done.stdout.partition("\n")
    return *map(int, first.split()), said


@needs_anymps
@pytest.mark.parametrize("program", LARGE, ids=lambda p: p.stem)
def test_to_load_and_compile_takes_little_memory(program):
    """Files of a few kilobytes; counting to 1.8 billion took 14 GB before anything ran. 4 GB are there to be taken."""
    status, memory, said = measure(ANYMPS, "inspect", program, "--compiled", limit=4 * GIGABYTE)
    assert status == 0, said
    assert memory < GIGABYTE // 4


@pytest.mark.parametrize("program", LARGE, ids=lambda p: p.stem)
def test_a_run_that_does_not_fit_fails_with_a_message(program):
    status, memory, said = measure(RUNNER, "--model_path", program, "--skip_warmup", "--noprint_output", limit=GIGABYTE)
    assert status == 1, (status, said)
    assert re.search(r"mps_executor_runner: \[\w+\] .*(cannot allocate|memory)", said), said
    assert memory < GIGABYTE


@pytest.fixture(params=["pipe", "folder", "device"])
def no_file(request, tmp_path):
    if request.param == "pipe":
        os.mkfifo(tmp_path / "x.pte")
        return tmp_path / "x.pte"
    return tmp_path if request.param == "folder" else "/dev/zero"


def test_what_is_no_file_is_refused_at_once(no_file):
    done = runner("--model_path", no_file)
    assert done.returncode == 1 and "not a regular file" in done.stderr


@needs_anymps
@pytest.mark.parametrize("command", [["run"], ["inspect"], ["run", "--method", "forward"], ["bench"]])
def test_the_command_refuses_it_too(no_file, command):
    done = subprocess.run([ANYMPS, command[0], no_file, *command[1:]], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and ("not a regular file" in done.stderr or "only .pte files have methods" in done.stderr), done.stderr


@needs_anymps
def test_an_input_that_is_no_file_is_refused(no_file):
    done = subprocess.run([ANYMPS, "run", CONV, "-i", f"input0={no_file}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "is not a regular file" in done.stderr, done.stderr


def broken_programs(tmp_path):
    program = Bundle(BUNDLES / "portable" / "segmented.pte").program
    assert program[8:12] == b"eh00"
    yield "empty.pte", b""
    yield "short.pte", program[:6]
    yield "letter.pte", b"Dear reader, this is not a program, and nothing that one could run. " * 4
    yield "zeros.pte", bytes(1000)
    yield "magic.pte", program[:4] + b"XX99" + program[8:]
    yield "header.bin", program[:4] + b"\0\0\0\0" + program[8:]
    yield "cut.pte", program[:200]
    yield "version.pte", program[:4] + b"ET99" + program[8:]


@needs_anymps
def test_a_broken_program_is_not_called_a_broken_onnx_file(tmp_path):
    for name, data in broken_programs(tmp_path):
        (tmp_path / name).write_bytes(data)
        for command in (["inspect"], ["run"], ["run", "--method", "forward"]):
            if name == "header.bin" and len(command) > 1:
                continue  # no name and no mark of a program: only its header tells
            done = subprocess.run([ANYMPS, command[0], tmp_path / name, *command[1:]], capture_output=True, text=True, timeout=60)
            assert done.returncode == 1 and "[executorch]" in done.stderr and "onnx" not in done.stderr.lower(), (name, done.stderr)
        done = runner("--model_path", tmp_path / name)
        assert done.returncode == 1 and "[executorch]" in done.stderr, (name, done.stderr)


@needs_anymps
def test_a_model_of_onnx_may_have_any_name(tmp_path):
    onnx = pytest.importorskip("onnx")
    node = onnx.helper.make_node("Neg", ["x"], ["y"])
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy"]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", values[:1], values[1:]),
                                   opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "model.pte").write_bytes(model.SerializeToString())
    done = subprocess.run([ANYMPS, "run", tmp_path / "model.pte", "--random-inputs"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_weights_come_from_the_programs_own_folder(tmp_path):
    """A program names tensors, never files: those that are looked for are NAME.ptd and the default one beside it."""
    place, other = tmp_path / "place", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    shutil.copy(BUNDLES / "portable" / "weights_outside.pte", place)
    shutil.copy(BUNDLES / "portable" / "weights_outside.ptd", other)
    done = runner("--model_path", place / "weights_outside.pte", "--bundled_program", cwd=other)
    assert done.returncode == 1 and "its weights are in a .ptd file" in done.stderr, done.stderr
    os.mkfifo(place / "weights_outside.ptd")
    assert runner("--model_path", place / "weights_outside.pte", "--bundled_program").returncode == 1
    os.remove(place / "weights_outside.ptd")
    shutil.copy(other / "weights_outside.ptd", place)
    assert runner("--model_path", place / "weights_outside.pte", "--bundled_program").returncode == 0


@pytest.mark.parametrize("streams", ["1>&-", "1>/dev/full", "1>&- 2>&-", "0<&- 1>&- 2>&-", "1>/dev/full 2>/dev/full"])
@pytest.mark.parametrize("flags", ["--help", "--model_path {} --bundled_program", "--model_path {} --etdump_path d.etdp"])
def test_streams_that_are_closed_or_full(streams, flags, tmp_path):
    command = f"{RUNNER} {flags.format(CONV)} {streams}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 1
    if "2>" not in streams:
        assert re.search("mps_executor_runner: .*(Bad file descriptor|No space left on device)", done.stderr), done.stderr
    dump = tmp_path / "d.etdp"
    assert not dump.exists() or dump.read_bytes()[8:12] == b"ED00"  # not what was meant for stdout


def test_a_closed_stderr_takes_no_answer_away(tmp_path):
    done = subprocess.run(["bash", "-c", f"{RUNNER} --model_path {CONV} --bundled_program 2>&-"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.endswith("Model verified successfully.\n")
    done = subprocess.run(["bash", "-c", f"{RUNNER} --model_path {tmp_path}/no.pte 2>&-"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2


def test_files_are_there_as_a_whole_or_not_at_all(tmp_path):
    """The disk is as good as full after a kilobyte."""
    (tmp_path / "d.etdp").write_text("of before")
    command = [RUNNER, "--model_path", CONV, "--etdump_path", "d.etdp", "--prof_result_path", "trace.json", "--noprint_output"]
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)), "restore_signals": False}
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, **full)
    finally:
        signal.signal(signal.SIGXFSZ, ignored)
    assert done.returncode == 1 and "cannot be written: File too large; --prof_result_path names another place" in done.stderr, done.stderr
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"d.etdp": "of before"}


def test_devices_and_links_keep_their_place(tmp_path):
    (tmp_path / "null").symlink_to("/dev/null")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real").write_text("old")
    for name in ("null", "link"):
        assert runner("--model_path", CONV, "--etdump_path", tmp_path / name).returncode == 0
        assert (tmp_path / name).is_symlink()
    os.mkfifo(tmp_path / "pipe")  # that nobody reads
    done = runner("--model_path", CONV, "--etdump_path", tmp_path / "pipe")
    assert done.returncode == 1 and "cannot be written: No such device or address" in done.stderr
    read = subprocess.run(["bash", "-c", f"{RUNNER} --model_path {CONV} --num_runs 2000 --noprint_output --etdump_path >(sleep 0.2; wc -c >&2)"],
                          capture_output=True, text=True, timeout=60)
    assert read.returncode == 0 and int(read.stderr) > 1 << 16, read.stderr
    assert (tmp_path / "null").is_char_device() and (tmp_path / "real").read_bytes()[8:12] == b"ED00"
