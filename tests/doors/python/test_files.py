# SPDX-License-Identifier: Apache-2.0
"""Model files that change while they are in use: saving over them harms no model, and truncating them is an error."""
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import anymps
import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper

ROOT = Path(__file__).resolve().parents[3]
ANYMPS = Path(os.environ.get("ANYMPS_BUILD_DIR", ROOT / "build")) / "bin" / "anymps"
SIZE = 300


def matrix(seed):
    return np.random.default_rng(seed).standard_normal((SIZE, SIZE)).astype(np.float32)


def write_onnx(path, op="MatMul", seed=0, external=False):
    """y = x op w"""
    w = onnx.numpy_helper.from_array(matrix(seed), "w")
    graph = helper.make_graph([helper.make_node(op, ["x", "w"], ["y"], name="n")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [SIZE, SIZE])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [SIZE, SIZE])], [w])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if external:
        external_data_helper.convert_model_to_external_data(model, location=path.name + ".data", size_threshold=0)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("ending", ["onnx", "mps"])
@pytest.mark.parametrize("op", ["MatMul", "Add"])
def test_saving_over_the_file_of_a_live_model(tmp_path, ending, op):
    path = tmp_path / f"model.{ending}"
    anymps.Graph.load(write_onnx(tmp_path / "first.onnx", op)).save(path)
    other = anymps.Graph.load(write_onnx(tmp_path / "second.onnx", op, seed=1))
    x = np.ones((SIZE, SIZE), np.float32)
    model, untouched = anymps.load(path), anymps.Graph.load(path)
    right = model(x)
    other.save(path)
    np.testing.assert_array_equal(model(x), right)
    np.testing.assert_array_equal(anymps.compile(untouched)(x), right)
    assert not np.array_equal(anymps.load(path)(x), right)
    untouched.save(path)  # over the file that it is read from
    np.testing.assert_array_equal(anymps.load(path)(x), right)
    assert sorted(os.listdir(tmp_path)) == sorted(["first.onnx", "second.onnx", path.name])


def test_a_link_stays_a_link_and_a_trace_is_replaced(tmp_path):
    graph = anymps.Graph.load(write_onnx(tmp_path / "a.onnx"))
    (tmp_path / "link.mps").symlink_to("real.mps")
    graph.save(tmp_path / "link.mps")
    assert (tmp_path / "link.mps").is_symlink() and (tmp_path / "real.mps").is_file()
    with anymps.profile() as profile:
        anymps.compile(graph)(np.ones((SIZE, SIZE), np.float32))
    profile.save_trace(tmp_path / "trace.json")
    with open(tmp_path / "trace.json") as old:
        profile.save_trace(tmp_path / "trace.json")
        assert json.load(old) == json.loads((tmp_path / "trace.json").read_text())
        assert os.fstat(old.fileno()).st_nlink == 0


def test_a_full_disk_leaves_the_old_file(tmp_path):
    script = f"""
        import resource, signal, anymps
        graph = anymps.Graph.load({str(write_onnx(tmp_path / "a.onnx"))!r})
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
        for path in ({str(tmp_path / "b.onnx")!r}, {str(tmp_path / "b.mps")!r}):
            try:
                graph.save(path)
            except anymps.Error as error:
                assert "cannot be written" in str(error) and path in str(error), error
            else:
                raise SystemExit("saved")
    """
    for name in ("b.onnx", "b.mps"):
        (tmp_path / name).write_text("old")
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=120)
    assert (tmp_path / "b.onnx").read_text() == (tmp_path / "b.mps").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["a.onnx", "b.mps", "b.onnx"]


# What a process does with a model whose file is truncated by another: each step is right, or an error that says so.
TRUNCATED = """
    import os, sys
    import anymps, numpy as np
    path, victim, size, cuts = sys.argv[1], sys.argv[2], int(sys.argv[3]), [int(cut) for cut in sys.argv[4:]]
    x = np.ones((size, size), np.float32)
    right = anymps.load(path)(x)
    with open(victim, "rb") as file:
        whole = file.read()

    def attempt(step):
        try:
            return step()
        except anymps.Error as error:
            told.append(str(error))
            return None

    for cut, used in [(cut, used) for cut in cuts for used in (False, True)]:
        os.unlink(victim)
        with open(victim, "wb") as file:
            file.write(whole)
        told = []
        graph = anymps.Graph.load(path)
        model = anymps.compile(graph)
        if used:
            model(x)
        os.truncate(victim, cut)
        for step in (lambda: model(x), lambda: model(x), lambda: anymps.compile(graph)(x), lambda: anymps.compile(graph, device="reference")(x),
                     lambda: anymps.compile(graph, optimization_level=0)(x)):
            result = attempt(step)
            assert result is None or np.allclose(result, right, atol=1e-3), ("wrong numbers", cut, used)
        saved = victim + ".saved.mps"
        attempt(lambda: graph.save(saved))
        if os.path.exists(saved):
            assert np.allclose(anymps.load(saved)(x), right, atol=1e-3), ("wrong numbers saved", cut, used)
        assert told, ("nobody noticed", cut, used)
        for message in told:
            assert victim in message and "was truncated while in use" in message, message
        assert attempt(lambda: anymps.load(path)) is None
"""


@pytest.mark.parametrize("op", ["MatMul", "Add"])
@pytest.mark.parametrize("kind", ["onnx", "mps", "external"])
def test_a_truncated_file_is_an_error(tmp_path, kind, op):
    path = write_onnx(tmp_path / "model.onnx", op, external=kind == "external")
    if kind == "mps":
        anymps.Graph.load(path).save(tmp_path / "model.mps")
        path = tmp_path / "model.mps"
    victim = tmp_path / "model.onnx.data" if kind == "external" else path
    cuts = [0, victim.stat().st_size // 2, 4096 * 3 + 5]
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(TRUNCATED), path, victim, str(SIZE), *map(str, cuts)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_a_truncated_program(tmp_path):
    path = tmp_path / "program.pte"
    path.write_bytes((ROOT / "tests" / "data" / "executorch" / "small" / sorted(
        p.name for p in (ROOT / "tests" / "data" / "executorch" / "small").glob("*_f32.pte"))[0]).read_bytes())
    script = f"""
        import os, anymps
        program = anymps.Program({str(path)!r})
        os.truncate({str(path)!r}, 4096)
        for step in (program.graph, program.tests, lambda: anymps.compile(program.graph())):
            try:
                step()
            except anymps.Error as error:
                assert "was truncated while in use" in str(error), error
            else:
                raise SystemExit("nobody noticed")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=120)


def test_the_command_with_a_truncated_file(tmp_path):
    """The worker of `bench` is the command that holds a model while others can reach its file."""
    path = tmp_path / "model.mps"  # whose constants are aligned, and read where they lie
    anymps.Graph.load(write_onnx(tmp_path / "model.onnx", "Add")).save(path)
    np.save(tmp_path / "x.npy", np.ones((SIZE, SIZE), np.float32))
    worker = subprocess.Popen([ANYMPS, "bench", "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(line):
        worker.stdin.write(line + "\n")
        worker.stdin.flush()
        return json.loads(worker.stdout.readline())

    ask(f"input x {tmp_path / 'x.npy'}")
    assert "load_ms" in ask(f"load {path} 1") and "ms" in ask("run 1")
    os.truncate(path, 5000)
    assert "was truncated while in use" in ask("run 1")["error"]
    worker.communicate("quit\n", timeout=60)
    assert worker.returncode == 0


def test_the_hosts_handler_stays(tmp_path):
    """faulthandler, as an example of a host's own handler for SIGBUS: it still gets the faults that are not ours."""
    path = write_onnx(tmp_path / "model.onnx", "Add")
    script = f"""
        import faulthandler, mmap, os, sys
        faulthandler.enable()
        import anymps
        model = anymps.load({str(path)!r})
        with open({str(tmp_path / "other")!r}, "w+b") as file:
            file.write(bytes(8192))
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            file.truncate(0)
            print(mapped[0])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == -7 and "Fatal Python error: Bus error" in done.stderr, (done.returncode, done.stderr)
