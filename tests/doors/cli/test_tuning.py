# SPDX-License-Identifier: Apache-2.0
"""ANYMPS_TUNE: what is measured is kept for the next process, numbers stay what they are, and nothing is done unasked."""
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[3]
ANYMPS = Path(os.environ.get("ANYMPS_BUILD_DIR", ROOT / "build")) / "bin" / "anymps"


def anymps(*args, **env):
    done = subprocess.run([str(ANYMPS), *map(str, args)], capture_output=True, text=True, env={**os.environ, **env}, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def model(tmp_path):
    """Three convolutions and a product."""
    random = np.random.default_rng(0)
    weights = {"a": (24, 3, 3, 3), "b": (24, 1, 3, 3), "c": (40, 24, 1, 1), "d": (40, 40, 3, 3), "e": (40, 10)}
    conv = {"a": {"pads": [1] * 4, "strides": [2, 2]}, "b": {"pads": [1] * 4, "group": 24}, "c": {}, "d": {"pads": [1] * 4}}
    nodes, last = [], "x"
    for name, attrs in conv.items():
        nodes.append(helper.make_node("Conv", [last, name], [f"y_{name}"], name=f"conv_{name}", **attrs))
        last = f"y_{name}"
    nodes += [helper.make_node("GlobalAveragePool", [last], ["p"]), helper.make_node("Flatten", ["p"], ["f"]),
              helper.make_node("MatMul", ["f", "e"], ["y"])]
    constants = [helper.make_tensor(name, TensorProto.FLOAT, shape, (random.standard_normal(shape) * 0.2).astype(np.float32).ravel())
                 for name, shape in weights.items()]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])], constants)
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.save(tmp_path / "x.npy", random.standard_normal((1, 3, 32, 32)).astype(np.float32))
    return path


def run(model, name, **env):
    done = anymps("run", model, "-i", f"x={model.parent}/x.npy", "-o", model.parent / name, ANYMPS_VERBOSE="dispatch", **env)
    return np.load(model.parent / name / "y.npy"), [line for line in done.stderr.splitlines() if line.startswith("tune: ")]


def test_a_second_process_measures_nothing(model, tmp_path):
    cache = tmp_path / "cache"
    usual, told = run(model, "usual", ANYMPS_TUNE_CACHE=str(cache))
    assert told == [] and not cache.exists()
    tuned, first = run(model, "first", ANYMPS_TUNE="on", ANYMPS_TUNE_CACHE=str(cache), ANYMPS_NUM_THREADS="1")
    again, second = run(model, "second", ANYMPS_TUNE="on", ANYMPS_TUNE_CACHE=str(cache), ANYMPS_NUM_THREADS="1")
    assert len(first) >= 4 and any(" us" in line for line in first) and not any("measured before" in line for line in first)
    assert len(second) == len(first) and all("measured before" in line for line in second)
    assert [line.split(" -> ")[1] for line in first] == [line.split(" -> ")[1] for line in second]
    assert np.array_equal(tuned, again) and np.abs(tuned - usual).max() <= 1e-4 * np.abs(usual).max()
    (file,) = cache.iterdir()
    file.write_bytes(file.read_bytes()[:-30])
    anew, third = run(model, "third", ANYMPS_TUNE="on", ANYMPS_TUNE_CACHE=str(cache), ANYMPS_NUM_THREADS="1")
    assert len(third) == len(first) and not any("measured before" in line for line in third)
    assert np.abs(anew - usual).max() <= 1e-4 * np.abs(usual).max()


def test_the_choice_agrees_with_the_reference(model, tmp_path):
    run(model, "checked", ANYMPS_TUNE="on", ANYMPS_TUNE_CACHE=str(tmp_path / "cache"), ANYMPS_CHECK="reference")


def test_doctor_tells_the_file(model, tmp_path):
    env = {"XDG_CACHE_HOME": str(tmp_path / "xdg"), "ANYMPS_TUNE_CACHE": ""}
    tuning = json.loads(anymps("doctor", "--json", **env).stdout)["tuning"]
    assert not tuning["on"] and tuning["choices"] == 0 and tuning["file"].startswith(f"{tmp_path}/xdg/anymps/choices-")
    assert not (tmp_path / "xdg").exists()
    run(model, "tuned", ANYMPS_TUNE="on", **env)
    tuning = json.loads(anymps("doctor", "--json", ANYMPS_TUNE="on", **env).stdout)["tuning"]
    assert tuning["on"] and tuning["choices"] >= 4 and tuning["problem"] == ""
    assert f"\ntuning: on, {tuning['file']} ({tuning['choices']} choices)\n" in anymps("doctor", ANYMPS_TUNE="on", **env).stdout
    Path(tuning["file"]).write_text("nonsense")
    assert "not used: it is no file of kernel choices" in anymps("doctor", **env).stdout
