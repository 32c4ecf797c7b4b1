# SPDX-License-Identifier: Apache-2.0
"""Real models, out of wheels of PyPI (models/wheels.py): AnyMPS beside ONNX Runtime, and node by node beside the reference.

A quick sample runs always; with ANYMPS_FULL_TESTS=1 (`scripts/test --full`) all of them do.
"""
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "models"), str(ROOT / "build" / "python")]

import anymps  # noqa: E402
import check_models  # noqa: E402
import wheel_cases  # noqa: E402
import wheels  # noqa: E402
from wheel_cases import CASES  # noqa: E402

FULL = os.environ.get("ANYMPS_FULL_TESTS") == "1"
NAMES = [name for name, case in CASES.items() if FULL or case.quick]
WHEELS = sorted({name.split("/")[0] for name, case in CASES.items() if FULL or case.quick})
DATASETS = Path(onnxruntime.__file__).parent / "datasets"


def session_of(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def results_of(model, inputs):
    results = model(**inputs)
    return results if isinstance(results, tuple) else (results,)


def close(name, actual, expected, tolerance):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, name
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected, name)
    elif expected.size:
        assert np.isfinite(actual).all(), name
        error = np.abs(actual.astype(np.float64) - expected).max() / (np.abs(expected).max() + 1e-30)
        assert error <= tolerance, f"{name}: {error:.2e} of the largest element, allowed {tolerance:.0e}"


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_onnx_runtime(name):
    path, case = wheel_cases.model_path(name), CASES[name]
    session, model = session_of(path), anymps.load(path, "cpu")
    assert [v.name for v in model.outputs] == [v.name for v in session.get_outputs()]
    for seed, dims in enumerate(wheel_cases.runs(case)):
        inputs = wheel_cases.make_inputs(name, session.get_inputs(), dims, seed)
        expected = session.run(None, inputs)
        # Twice: the second run takes the plan and the packed weights that the first one left.
        for _ in range(2):
            for value, actual, wanted in zip(model.outputs, results_of(model, inputs), expected, strict=True):
                close(value.name, actual, wanted, case.tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_every_node_agrees_with_the_reference(name):
    check_models.run_checked(name)  # a node that differs is an exception


@pytest.mark.parametrize("name", WHEELS)
def test_no_model_of_a_wheel_is_left_out(name):
    folder, _ = wheels.fetch(name)
    found = {f"{name}/{path.relative_to(folder).with_suffix('')}" for path in folder.rglob("*.onnx")}
    assert found == {case for case in CASES if case.split("/")[0] == name}


def test_mel_spectrogram_is_that_of_float64():
    """An opinion that is neither runtime's: the features of gigaam_v2 from numpy's FFT."""
    path = wheel_cases.model_path("onnx_asr/gigaam_v2")
    weights = {t.name: onnx.numpy_helper.to_array(t).astype(np.float64) for t in onnx.load(path).graph.initializer}
    window, mel = weights["hann_window"], weights["melscale_fbanks_v2_cast"]
    sound = wheel_cases.tone(np.random.default_rng(0), (1, 8000), {})
    padded = np.pad(sound.astype(np.float64), ((0, 0), (window.size // 2,) * 2), "reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, window.size, 1)[:, ::int(weights["hop_length_2_cast"])]
    power = np.abs(np.fft.rfft(frames * window)) ** 2 @ mel
    expected = np.log(np.clip(power, weights["clamp_min_cast"], weights["clamp_max_cast"])).transpose(0, 2, 1)
    features, _ = anymps.load(path, "cpu")(sound, np.array([8000]))
    assert np.abs(features - expected).max() < 5e-6


def test_iris_classifier():
    """A linear classifier, a normalizer and a map of class probabilities, out of ONNX Runtime's own wheel."""
    graph = onnx.load(DATASETS / "logreg_iris.onnx")
    graph.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 4  # the file says 2; its weights are for 4 features
    x = np.random.default_rng(0).uniform(0, 7, (3, 4)).astype(np.float32)
    expected = onnxruntime.InferenceSession(graph.SerializeToString()).run(None, {"float_input": x})
    label, probabilities = anymps.load(graph.SerializeToString(), "cpu")(x)
    np.testing.assert_array_equal(label, expected[0])
    for actual, wanted in zip(probabilities, expected[1], strict=True):
        assert actual.keys() == wanted.keys()
        for key, value in wanted.items():
            assert actual[key] == pytest.approx(value, abs=1e-6)


def test_fetching_again_keeps_the_files():
    folder, _ = wheels.fetch("swift_f0")
    before = (folder / "model.onnx").stat().st_mtime_ns
    assert wheels.fetch("swift_f0") == (folder, False)
    assert (folder / "model.onnx").stat().st_mtime_ns == before


def test_no_network_is_an_error_that_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(wheels.WheelError, match="swift-f0==0.3.0: pip could not download it .*network"):
        wheels.fetch("swift_f0", tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_another_hash_is_refused(tmp_path, monkeypatch):
    pins = {"swift_f0": wheels.pins()["swift_f0"][:-4] + "0000"}
    monkeypatch.setattr(wheels, "pins", lambda: pins)
    with pytest.raises(wheels.WheelError, match="swift-f0"):
        wheels.fetch("swift_f0", tmp_path)


def test_a_path_that_leads_out_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.whl", "w") as archive:
        archive.writestr("models/../../bad.onnx", b"")
    with pytest.raises(wheels.WheelError, match="leads out"):
        wheels.unpack(tmp_path / "bad.whl", wheels.onnx_files("models", "MIT"), tmp_path / "a" / "b")


def test_reads_safetensors(tmp_path):
    head = b'{"__metadata__":{},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"I64","shape":[],"data_offsets":[16,24]}}'
    data = np.arange(4, dtype="<f4").tobytes() + np.array(-7, "<i8").tobytes()
    (tmp_path / "x.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + data)
    tensors = wheels.read_safetensors(tmp_path / "x.safetensors")
    np.testing.assert_array_equal(tensors["a"], [[0, 1], [2, 3]])
    assert tensors["b"] == -7 and tensors.keys() == {"a", "b"}
