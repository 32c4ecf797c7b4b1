# SPDX-License-Identifier: Apache-2.0
"""Programs that keep state: what `run` shows and writes is what the first run gives, from a fresh state."""
import json

import anymps as package
import numpy as np
import pytest

from tests.doors.cli.test_cli import ROOT, anymps

DATA = ROOT / "tests" / "data" / "executorch"


@pytest.fixture
def counter(tmp_path):
    """y = count = count + x"""
    graph = package.Graph("counter")
    x = graph.input("x", "f32", (1,))
    count = package.ops.read_variable(graph.constant([0], "f32"), variable="count")
    graph.outputs(package.ops.assign_variable(count + x, variable="count"))
    graph.save(tmp_path / "counter.mps")
    np.save(tmp_path / "one.npy", np.ones(1, np.float32))
    return tmp_path / "counter.mps", ["-i", f"x={tmp_path / 'one.npy'}"]


def test_a_graph_with_a_variable(counter, tmp_path):
    path, inputs = counter
    for more in ([], ["--profile"], ["--check"], ["-O", "0"]):
        done = anymps("run", path, *inputs, "-o", tmp_path / "out", "--json", *more)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        (output,) = report["outputs"].values()
        assert output["mean"] == 1 and report["stateful"] is True and report["kernels"]
        (file,) = (tmp_path / "out").iterdir()
        assert np.load(file).tolist() == [1]
    assert "run once, since it keeps state" in anymps("run", path, *inputs).stdout


@pytest.mark.parametrize("name", ["portable/buffer_of_zeros.pte", "portable/buffer_with_content.pte", "programs/counter.pte"])
def test_a_program_with_buffers(name, tmp_path):
    program = package.Program(DATA / name)
    (method,) = program.methods
    fed, wanted = program.tests(method)[0]
    inputs = []
    for i, tensor in enumerate(fed):
        np.save(tmp_path / f"{i}.npy", tensor.numpy())
        inputs += ["-i", f"input{i}={tmp_path / f'{i}.npy'}"]
    done = anymps("run", DATA / name, *inputs, "-o", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["stateful"] is True
    for name, tensor in zip(report["outputs"], wanted, strict=True):
        np.testing.assert_allclose(np.load(tmp_path / "out" / f"{name}.npy"), tensor.numpy(), rtol=1e-5)


def test_who_measures_is_told(counter):
    path, inputs = counter
    for command in ("bench", "profile"):
        done = anymps(command, path, *inputs, "-n", "2")
        assert done.returncode == 0 and "keeps state" in done.stderr
    assert json.loads(anymps("bench", path, *inputs, "-n", "2", "--json").stdout)["stateful"] is True
    stateless = anymps("bench", ROOT / "examples" / "models" / "softmax.onnx", "-n", "2", "--json")
    assert json.loads(stateless.stdout)["stateful"] is False and not stateless.stderr
