# SPDX-License-Identifier: Apache-2.0
"""scripts/bench wheels: its list of models, its table and its plot."""
import sys
import xml.etree.ElementTree as ET
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench" / "models"), str(ROOT / "models")]

import kernels  # noqa: E402
import measure  # noqa: E402
import peer_worker  # noqa: E402
import report  # noqa: E402
import run_wheels  # noqa: E402
import wheel_cases  # noqa: E402
from worker import RUNTIMES, WorkerError  # noqa: E402

KERNELS = [{"op": "conv", "kernel": "onednn", "share": 0.61, "gflops": 90.0}, {"op": "relu", "kernel": "tile", "share": 0.2, "gbs": 12.5}]


def rows(spoiled=0, threads=1):
    """Twice as fast as the better peer, and twice as slow; where it is slow, OpenVINO is the better one."""
    made = []
    for name, scale in (("a/fast", 0.5), ("b/slow", 2.0)):
        peers = {"onnxruntime": 1.0, "openvino": 1.5} if scale < 1 else {"onnxruntime": 3.0, "openvino": 1.0}
        results = {runtime: measure.Result(runtime, "1.0", [[10 * s, 12 * s]], spoiled=spoiled,
                                           fresh={"peak_rss_mb": 50 * s, "baseline_rss_mb": 5, "load_ms": 7 * s, "first_run_ms": 20 * s})
                   for runtime, s in (("anymps", scale), *peers.items())}
        model = SimpleNamespace(name=name, batch=1, seq=0, inputs=lambda: {"x": np.ones((1, 3))})
        made += run_wheels.rows_of_case(name, model, threads, results, KERNELS)
    return made


def test_ratios_are_to_the_better_peer():
    ours = [row for row in rows() if row["runtime"] == "anymps"]
    assert [(row["peer"], row["ratio"], row["quiet"]) for row in ours] == [("onnxruntime", 0.5, True), ("openvino", 2.0, True)]
    assert ours[0]["kernels"] == KERNELS and "kernels" not in rows()[1]
    assert {"median_ms", "min_ms", "p90_ms", "load_ms", "first_run_ms", "peak_rss_mb", "threads"} <= ours[0].keys()


def test_table_counts_and_names_what_failed():
    table = run_wheels.markdown(rows(), {"c/refused": "no such op"}, report.machine(ROOT))
    assert "1 of 2 are faster" in table and "geometric mean of (better peer / AnyMPS) is 1.00 (2 models)" in table
    assert "More than 1.1 times the better peer's time: b/slow 2.00 (OpenVINO)." in table
    assert ("| a/fast | 1x3 | 1 | 5.500 | 11.000 | 16.500 | 0.50 (0.50–0.50) | 4 / 7 / 10 | 10.0 / 20.0 / 30.0 | 25 / 50 / 75 "
            "| conv onednn 61% (90 GFLOP/s), relu tile 20% (12.5 GB/s) |") in table
    assert "- c/refused: no such op" in table


def test_small_models_do_not_count_in_the_mean():
    made = rows()
    for row in made:
        if row["model"] == "a/fast":
            row["median_ms"] /= 1000
    assert "(better peer / AnyMPS) is 0.50 (1 models)" in "\n".join(run_wheels.summary(made))


def test_what_was_not_quiet_is_marked():
    table = run_wheels.markdown(rows(spoiled=1) + rows(threads=2), {}, report.machine(ROOT))
    assert "| ~0.50 (0.50–0.50) |" in table and "b/slow 2.00 (OpenVINO, not quiet)." in table
    assert "- 1 thread: 1 of 2" in table and "- 2 threads: 1 of 2" in table


def test_a_peer_that_cannot_is_left_out():
    made = [row for row in rows() if row["runtime"] != "openvino" or row["model"] == "b/slow"]
    line = next(line for line in run_wheels.markdown(made, {}, report.machine(ROOT)).splitlines() if line.startswith("| a/fast"))
    assert line.startswith("| a/fast | 1x3 | 1 | 5.500 | 11.000 |  | 0.50 ")
    assert run_wheels.rows_of_case("m", SimpleNamespace(name="m", batch=1, seq=0, inputs=dict), 1,
                                   {"anymps": measure.Result("anymps", "1", [[1.0]])}, [])[0].get("ratio") is None


def test_kernels_are_added_up_by_op():
    one = {"op": "matmul", "kernel": "gemm", "calls": 2, "total_ns": 300, "flops": 5000.0, "bytes": 100.0}
    other = {"op": "add", "kernel": "tile", "calls": 1, "total_ns": 400, "flops": 10.0, "bytes": 800.0}
    got = kernels.added_up([one, {**one, "total_ns": 300}, other, {**other, "op": "mul", "total_ns": 0}], count=2)
    assert got == [{"op": "matmul", "kernel": "gemm", "share": 0.6, "gflops": round(20000 / 600, 1)},
                   {"op": "add", "kernel": "tile", "share": 0.4, "gbs": 2.0}]


def test_plot_has_a_bar_for_each_model():
    words = [e.text for e in ET.fromstring(run_wheels.svg(rows(), report.machine(ROOT))).iter("{http://www.w3.org/2000/svg}text")]
    assert {"fast", "slow", "0.50  (5.5 ms)", "2.00  (22 ms)"} <= set(words)


class FakeWorker:
    """A runtime that fails when it loads, or gives another number."""

    VALUES = {"anymps": 1.0, "onnxruntime": 1.0, "openvino": 1.0, "other": 2.0}

    def __init__(self, runtime, log):
        self.runtime, self.version = runtime, "1"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def close(self):
        pass

    def prepare(self, model, threads, inputs):
        if self.VALUES[self.runtime] is None:
            raise WorkerError("no such op")

    def run(self, count):
        return [1.0] * count

    def ask(self, line):
        np.save(Path(line.split(" ", 1)[1]) / "y.npy", np.float32([self.VALUES[self.runtime]]))


@pytest.mark.parametrize("values, why", [({"openvino": None}, "no such op"), ({"openvino": 2.0}, "differs from onnxruntime")])
def test_workers_start_without_a_peer_that_cannot(monkeypatch, tmp_path, values, why):
    monkeypatch.setattr(measure, "Worker", FakeWorker)
    monkeypatch.setattr(FakeWorker, "VALUES", {**FakeWorker.VALUES, **values})
    left_out = {}
    with ExitStack() as stack:
        workers, results = measure.start_workers(stack, RUNTIMES, "m", 1, {}, tmp_path, "log", 1e-3, left_out)
    assert [w.runtime for w in workers] == list(results) == ["anymps", "onnxruntime"]
    assert why in left_out["openvino"]


def test_ours_must_run(monkeypatch, tmp_path):
    monkeypatch.setattr(measure, "Worker", FakeWorker)
    monkeypatch.setattr(FakeWorker, "VALUES", {**FakeWorker.VALUES, "anymps": None})
    with ExitStack() as stack, pytest.raises(WorkerError):
        measure.start_workers(stack, RUNTIMES, "m", 1, {}, tmp_path, "log", 1e-3, {})


def test_disagreement_depends_on_the_model(tmp_path):
    class Fake:
        def __init__(self, runtime, value):
            self.runtime, self.value = runtime, value

        def ask(self, line):
            np.save(Path(line.split(" ", 1)[1]) / "y.npy", np.float32([self.value, 1.0]))

    pair = [Fake("anymps", 1.01), Fake("onnxruntime", 1.0)]
    results = {w.runtime: measure.Result(w.runtime, "0") for w in pair}
    measure.compare_outputs(pair, results, tmp_path, wheel_cases.QUANTIZED)
    with pytest.raises(measure.Disagreement):
        measure.compare_outputs(pair, results, tmp_path, wheel_cases.FLOAT)


def test_a_name_of_a_dimension_means_what_the_model_says(tmp_path):
    """N is the batch of the reference models, and the samples of others: there it must stay free."""
    from onnx import TensorProto, helper, save

    graph = helper.make_graph([helper.make_node("Relu", ["waves"], ["y"])], "g",
                              [helper.make_tensor_value_info("waves", TensorProto.FLOAT, ["batch", "N"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "N"])])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    runtime, inputs = peer_worker.OnnxRuntime(), {"waves": np.ones((2, 7), np.float32)}
    runtime.load(tmp_path / "m.onnx", 1, inputs)
    assert runtime.run(inputs)[0].shape == (2, 7)
