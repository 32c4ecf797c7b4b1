# SPDX-License-Identifier: Apache-2.0
"""scripts/bench halves: its figures, its table, and what the models in half types are."""
import os
import sys
from pathlib import Path

import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "models"), str(ROOT / "models")]

import make_halves  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
import run_halves  # noqa: E402


def rows(spoiled=0):
    times = {"f32": [[4.0], [8.0]], "f16": [[5.0], [10.0]], "bf16": [[2.0], [4.0]]}
    results = {kind: measure.Result(kind, "1.0", rounds, max_rel_diff=0.25, spoiled=spoiled) for kind, rounds in times.items()}
    return run_halves.rows_of_case(measure.Model("m"), "avx2", 2, results)


def test_types_are_relative_to_f32_in_the_same_round():
    assert [(row["type"], row["ratio"]) for row in rows()] == [("f32", 1.0), ("f16", 1.25), ("bf16", 0.5)]


@pytest.mark.parametrize("spoiled, mark", [(0, ""), (1, "~")])
def test_table_says_where_the_cores_were_not_free(spoiled, mark):
    table = run_halves.markdown(rows(spoiled), report.machine(ROOT))
    assert f"| m | avx2 | 2 | 6.00 | 7.50 | 3.00 | {mark}1.25 (1.25–1.25) | {mark}0.50 (0.50–0.50) | 2.5e-01 | 2.5e-01 |" in table


def test_a_set_of_instructions_is_that_of_processes_inside(monkeypatch):
    monkeypatch.setenv("ANYMPS_ISA", "sse4")
    with run_halves.instructions("avx2"):
        assert os.environ["ANYMPS_ISA"] == "avx2"
    assert os.environ["ANYMPS_ISA"] == "sse4"


@pytest.mark.parametrize("kind, element", [("f16", onnx.TensorProto.FLOAT16), ("bf16", onnx.TensorProto.BFLOAT16)])
def test_all_between_inputs_and_outputs_is_in_the_half_type(kind, element):
    model = onnx.shape_inference.infer_shapes(make_halves.half("mobilenet_v2", kind), strict_mode=True)
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.value_info}
    types |= {weight.name: weight.data_type for weight in model.graph.initializer}
    assert set(types.values()) <= {element, onnx.TensorProto.INT64} and len(types) > 200
    assert [value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.output)] == [onnx.TensorProto.FLOAT] * 2
