# SPDX-License-Identifier: Apache-2.0
"""Whole models: AnyMPS beside ONNX Runtime, over batch sizes and sequence lengths, through the command line."""
import functools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

ROOT = Path(__file__).resolve().parents[2]
ANYMPS = ROOT / "build" / "bin" / "anymps"
MODELS = ROOT / ".models"
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

CASES = [
    ("mobilenet_v2", {"N": 1}), ("mobilenet_v2", {"N": 3}),
    ("resnet50", {"N": 1}), ("resnet50", {"N": 2}),
    ("minilm_l6", {"N": 1, "S": 128}), ("minilm_l6", {"N": 3, "S": 17}), ("minilm_l6", {"N": 2, "S": 1}),
    ("bert_base", {"N": 1, "S": 32}), ("bert_base", {"N": 2, "S": 9}),
]


@functools.cache
def model_path(name):
    subprocess.run([sys.executable, ROOT / "models" / "make_models.py", "--out", MODELS, name], check=True)
    return MODELS / f"{name}.onnx"


def random_inputs(session, dims, seed=7):
    rng = np.random.default_rng(seed)
    inputs = {}
    for value in session.get_inputs():
        shape = [d if isinstance(d, int) else dims.get(d, 1) for d in value.shape]
        if value.type == "tensor(int64)":
            array = rng.integers(0, 2 if "mask" in value.name else 1000, shape)
            array[..., 0] = 1  # a row that is masked altogether has no defined result
            inputs[value.name] = array.astype(np.int64)
        else:
            inputs[value.name] = rng.standard_normal(shape).astype(np.float32)
    return inputs


def run_anymps(path, inputs, tmp_path, *options):
    command = [ANYMPS, "run", path, "--output-dir", tmp_path / "out", "--json", *options]
    for name, array in inputs.items():
        file = tmp_path / (name.replace("/", "_") + ".npy")
        np.save(file, array)
        command += ["--input", f"{name}={file}"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    return report, {p.stem: np.load(p) for p in (tmp_path / "out").glob("*.npy")}


def close(actual, expected, tolerance):
    scale = np.abs(expected).max() + 1e-30
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    assert np.isfinite(actual).all()
    assert np.abs(actual - expected).max() / scale < tolerance


@pytest.mark.parametrize("name,dims", CASES, ids=lambda v: v if isinstance(v, str) else "x".join(map(str, v.values())))
def test_agrees_with_onnx_runtime(name, dims, tmp_path):
    session = onnxruntime.InferenceSession(str(model_path(name)), providers=["CPUExecutionProvider"])
    inputs = random_inputs(session, dims)
    expected = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))
    report, outputs = run_anymps(model_path(name), inputs, tmp_path)
    assert outputs.keys() == expected.keys()
    for key, value in expected.items():
        close(outputs[key], value, 2e-5)
    assert "reference" not in report["kernels"], "a kernel of the CPU driver is missing"


@pytest.mark.parametrize("name,dims", [("mobilenet_v2", {"N": 1}), ("minilm_l6", {"N": 2, "S": 6})],
                         ids=["mobilenet_v2", "minilm_l6"])
def test_cpu_agrees_with_reference_node_by_node(name, dims, tmp_path):
    session = onnxruntime.InferenceSession(str(model_path(name)), providers=["CPUExecutionProvider"])
    inputs = random_inputs(session, dims)
    _, cpu = run_anymps(model_path(name), inputs, tmp_path, "--check")
    _, oracle = run_anymps(model_path(name), inputs, tmp_path, "--device", "reference")
    for key, value in oracle.items():
        close(cpu[key], value, 2e-5)


@pytest.mark.parametrize("name,dims", [("mobilenet_v2", {"N": 2}), ("minilm_l6", {"N": 1, "S": 20})],
                         ids=["mobilenet_v2", "minilm_l6"])
def test_compiled_file_gives_the_same_numbers(name, dims, tmp_path):
    session = onnxruntime.InferenceSession(str(model_path(name)), providers=["CPUExecutionProvider"])
    inputs = random_inputs(session, dims)
    _, direct = run_anymps(model_path(name), inputs, tmp_path)
    compiled = tmp_path / "model.mps"
    subprocess.run([ANYMPS, "compile", model_path(name), "-o", compiled], check=True, capture_output=True)
    _, loaded = run_anymps(compiled, inputs, tmp_path)
    for key, value in direct.items():
        np.testing.assert_array_equal(loaded[key], value)


def test_results_do_not_depend_on_threads(tmp_path):
    path = model_path("mobilenet_v2")
    inputs = {"input": np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)}
    _, one = run_anymps(path, inputs, tmp_path, "--threads", "1")
    _, two = run_anymps(path, inputs, tmp_path, "--threads", "2")
    np.testing.assert_array_equal(one["output"], two["output"])


@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda p: p.stem)
def test_light_models(path, tmp_path):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    inputs = random_inputs(session, {})
    expected = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))
    _, outputs = run_anymps(path, inputs, tmp_path)
    for key, value in expected.items():
        close(outputs[key.replace("/", "%2F")], value, 2e-5)
