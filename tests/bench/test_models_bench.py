# SPDX-License-Identifier: Apache-2.0
"""scripts/bench models: the worker protocol, the agreement check, the figures and the plot."""
import os
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "models"))

import measure  # noqa: E402
import report  # noqa: E402
from worker import Worker, WorkerError  # noqa: E402

PEERS = [sys.executable, ROOT / "bench" / "models" / "peer_worker.py"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """y = 2 * x with a free batch dimension N, and an input for it."""
    from onnx import TensorProto, helper, numpy_helper, save

    folder = tmp_path_factory.mktemp("model")
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "two"], ["y/out"])], "twice",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y/out", TensorProto.FLOAT, ["N", 3])],
        [numpy_helper.from_array(np.float32(2), "two")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "twice.onnx")
    np.save(folder / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    return folder


def workers():
    anymps = ROOT / "build" / "bin" / "anymps"
    yield pytest.param("anymps", [anymps, "bench", "--worker"], id="anymps",
                       marks=pytest.mark.skipif(not anymps.exists(), reason="build/bin/anymps is not built"))
    for name in ("onnxruntime", "openvino"):
        yield pytest.param(name, [*PEERS, name], id=name)


@pytest.mark.parametrize("name, command", list(workers()))
def test_worker_speaks_the_protocol(name, command, model, tmp_path):
    with Worker(name, tmp_path / "log", command) as worker:
        assert worker.version
        with pytest.raises(WorkerError, match="failed at 'run 1'"):
            worker.run(1)
        assert worker.prepare(model / "twice.onnx", 1, {"x": model / "x.npy"}) > 0
        assert len(worker.run(3)) == 3
        worker.ask(f"output {tmp_path}")
        np.testing.assert_array_equal(np.load(tmp_path / "y_out.npy"), 2 * np.load(model / "x.npy"))
        with pytest.raises(WorkerError, match="failed at 'load"):
            worker.ask(f"load {tmp_path}/missing.onnx 1")
        assert worker.memory_mb("VmHWM") >= worker.memory_mb("VmRSS") > 1


def test_worker_that_ends_is_reported(tmp_path):
    with pytest.raises(WorkerError, match="ended .status 3."):
        Worker("dead", tmp_path / "log", [sys.executable, "-c", "import sys; sys.stdin.readline(); sys.exit(3)"])


@pytest.mark.parametrize("ours, rel", [
    ([1.0, 2.0], 0.0),
    ([1.0, 2.2], 0.1),
    ([1.0, np.nan], np.inf),
    ([1.0, 2.0, 3.0], np.inf),
])
def test_difference_is_relative_to_the_largest_value(ours, rel):
    got = measure.difference(np.array(ours), np.array([1.0, 2.0]))[1]
    assert got == pytest.approx(rel)


class FakeWorker:
    def __init__(self, runtime, value):
        self.runtime, self.value = runtime, value

    def ask(self, line):
        np.save(Path(line.split(" ", 1)[1]) / "y.npy", np.float32([self.value, 1.0]))


def test_disagreement_raises(tmp_path):
    pair = [FakeWorker("anymps", 1.01), FakeWorker("onnxruntime", 1.0)]
    results = {w.runtime: measure.Result(w.runtime, "0") for w in pair}
    with pytest.raises(measure.Disagreement, match="anymps differs from onnxruntime"):
        measure.compare_outputs(pair, results, tmp_path)
    pair[0].value = 1.0001
    results["anymps"] = measure.Result("anymps", "0")
    measure.compare_outputs(pair, results, tmp_path)
    assert results["anymps"].max_rel_diff == pytest.approx(1e-4, rel=1e-2)


def make_result(runtime, scale):
    fresh = {"peak_rss_mb": 50 * scale, "baseline_rss_mb": 5, "load_ms": 10, "first_run_ms": 2}
    return measure.Result(runtime, "1.0", [[10 * scale, 12 * scale], [20 * scale, 22 * scale]], fresh=fresh)


def test_rows_ratio_and_reports():
    results = {"anymps": make_result("anymps", 0.5), "onnxruntime": make_result("onnxruntime", 1)}
    rows = report.rows_of(measure.MODELS[2], 2, results)
    assert [(r["runtime"], r["threads"], r["seq"], r["median_ms"], r["min_ms"], r["ratio"]) for r in rows] == [
        ("anymps", 2, 128, 8.0, 5.0, 0.5), ("onnxruntime", 2, 128, 16.0, 10.0, 1.0)]
    about = report.machine(ROOT)
    table = report.markdown(rows, about)
    assert "| minilm_l6 | 2 | **AnyMPS** | 8.00 | 5.00 | 10.70 | 0.50 (0.50–0.50) | 25 | 5 | 10 |" in table
    picture = ET.fromstring(report.svg(rows, about))
    words = [e.text for e in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "8.0 ms" in words and "50 MB" in words


def test_machine_names_neither_host_nor_paths():
    text = repr(report.machine(ROOT))
    assert os.uname().nodename not in text and str(ROOT) not in text


def test_percentile_interpolates():
    assert report.percentile([4, 1, 3, 2], 0.5) == 2.5
    assert report.percentile([7], 0.9) == 7
