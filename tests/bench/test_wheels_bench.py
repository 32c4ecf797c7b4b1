# SPDX-License-Identifier: Apache-2.0
"""scripts/bench wheels: its list of models, its table and its plot."""
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench" / "models"), str(ROOT / "models")]

import measure  # noqa: E402
import peer_worker  # noqa: E402
import report  # noqa: E402
import run_wheels  # noqa: E402
import wheel_cases  # noqa: E402


def rows():
    made = []
    for name, scale in (("a/fast", 0.5), ("b/slow", 2.0)):
        results = {runtime: measure.Result(runtime, "1.0", [[10 * s, 12 * s]], fresh={"peak_rss_mb": 50 * s, "baseline_rss_mb": 5})
                   for runtime, s in (("anymps", scale), ("onnxruntime", 1.0))}
        model = SimpleNamespace(name=name, batch=1, seq=0)
        made += [{**row, "inputs": "1x3"} for row in report.rows_of(model, 1, results)]
    return made


def test_table_counts_and_names_what_failed():
    table = run_wheels.markdown(rows(), {"c/refused": "no such op"}, report.machine(ROOT))
    assert "1 of 2 are faster" in table and "geometric mean of the ratios is 1.00" in table
    assert "| a/fast | 1x3 | 1 | 5.500 | 11.000 | 0.50 (0.50–0.50) | 25 | 50 |" in table
    assert "- c/refused: no such op" in table


def test_plot_has_a_bar_for_each_model():
    words = [e.text for e in ET.fromstring(run_wheels.svg(rows(), report.machine(ROOT))).iter("{http://www.w3.org/2000/svg}text")]
    assert {"fast", "slow", "0.50  (5.5 ms)", "2.00  (22 ms)"} <= set(words)


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
