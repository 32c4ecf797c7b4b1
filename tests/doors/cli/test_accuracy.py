# SPDX-License-Identifier: Apache-2.0
"""`anymps compile --quantize`: the file, what it says of the weights and of the outputs, and its options."""
import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.doors.cli.test_cli import anymps

WORDS, DEPTH, CLASSES = 300, 96, 200


@pytest.fixture
def model(tmp_path):
    """scores = relu(table[ids] @ w + b) summed over the words, and the table's rows as another output."""
    rng = np.random.default_rng(1)
    weights = {"table": rng.standard_normal((WORDS, DEPTH)), "w": rng.standard_normal((DEPTH, CLASSES)), "b": rng.standard_normal(CLASSES)}
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"]), helper.make_node("MatMul", ["rows", "w"], ["m"]),
             helper.make_node("Add", ["m", "b"], ["s"]), helper.make_node("Relu", ["s"], ["r"]),
             helper.make_node("ReduceSum", ["r", "one"], ["scores"], keepdims=0), helper.make_node("Add", ["ids", "two"], ["next"])]
    tensors = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    tensors += [numpy_helper.from_array(np.array([1], np.int64), "one"), numpy_helper.from_array(np.array(2, np.int64), "two")]
    graph = helper.make_graph(nodes, "words", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["N", "S"])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", CLASSES]),
                               helper.make_tensor_value_info("next", TensorProto.INT64, ["N", "S"])], tensors)
    path = tmp_path / "words.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def report(model, *args):
    done = anymps("compile", model, *args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def outputs(path, ids):
    done = anymps("run", path, "--input", f"ids={ids}", "-o", ids.parent / path.stem)
    assert done.returncode == 0, done.stderr
    return np.load(ids.parent / path.stem / "scores.npy")


def test_the_file_is_smaller_and_the_numbers_are_near(model, tmp_path):
    ids = tmp_path / "ids.npy"
    np.save(ids, np.array([[1, 7, 299], [0, 3, 3]]))
    plain = report(model, "-o", tmp_path / "plain.mps")
    exact, sizes = outputs(tmp_path / "plain.mps", ids), [plain["bytes"]]
    for kind, most in (("int8", 0.02), ("int4", 0.2)):
        told = report(model, "-o", tmp_path / f"{kind}.mps", "--quantize", kind)
        sizes.append(told["bytes"])
        quantized = told["quantize"]
        assert (quantized["weights"], quantized["products"], quantized["tables"]) == (kind, 1, 1)
        assert quantized["constant_bytes_before"] - quantized["constant_bytes"] > (WORDS + CLASSES) * DEPTH * 2.8
        got = outputs(tmp_path / f"{kind}.mps", ids)
        error = np.sqrt(((got - exact) ** 2).sum() / (exact ** 2).sum())
        assert 0 < error < most
    assert sizes[0] > 3 * sizes[1] > 3 * sizes[2]


def test_the_error_is_that_of_the_outputs(model, tmp_path):
    """What is reported for an input is what the two files give for it."""
    ids = tmp_path / "ids.npy"
    np.save(ids, np.array([[5, 6], [8, 9], [1, 250]]))
    told = report(model, "-o", tmp_path / "few.mps", "--quantize", "int8", "--input", f"ids={ids}", "--samples", "1")["quantize"]
    got, exact = outputs(tmp_path / "few.mps", ids).astype(np.float64), outputs(model, ids).astype(np.float64)
    scores, error = told["outputs"]["scores"], got - exact
    rms = np.sqrt((error ** 2).sum() / (exact ** 2).sum())
    assert scores["rms"] == pytest.approx(rms, rel=1e-4) and scores["snr_db"] == pytest.approx(-20 * np.log10(rms), rel=1e-4)
    assert scores["max"] == pytest.approx(np.abs(error).max() / np.abs(exact).max(), rel=1e-4)
    cosine = (got * exact).sum() / np.linalg.norm(got) / np.linalg.norm(exact)
    assert scores["cosine"] == pytest.approx(cosine, abs=1e-9) and scores["rows"] == 3
    assert scores["same_top"] == (got.argmax(1) == exact.argmax(1)).sum()
    assert told["outputs"]["next"] == {"same_shape": True, "elements": 6, "same": 6}


def test_what_people_read(model, tmp_path):
    done = anymps("compile", model, "--quantize", "int4", "--dim", "N=2", "--dim", "S=3", "--samples", "2", "--seed", "5")
    assert done.returncode == 0 and (tmp_path / "words.mps").exists(), done.stderr
    for words in ("int4: weights of 1 products, 1 tables; constants ", "over 2 sets of inputs, seed 5:", "  scores: error rms ",
                  "the same first class in ", " of 4 rows", "  next: 12 of 12 elements are the same", "words.mps: "):
        assert words in done.stdout, done.stdout
    again = anymps("compile", model, "--quantize", "int4", "--dim", "N=2", "--dim", "S=3", "--samples", "2", "--seed", "5")
    assert again.stdout == done.stdout
    none = anymps("compile", model, "--quantize", "int8", "--samples", "0")
    assert none.returncode == 0 and "int8: weights of" in none.stdout and "scores" not in none.stdout


def test_a_file_that_is_quantized_already(model, tmp_path):
    report(model, "-o", tmp_path / "few.mps", "--quantize", "int8")
    told = report(tmp_path / "few.mps", "-o", tmp_path / "again.mps", "--quantize", "int8")["quantize"]
    assert told == {"weights": "int8", "products": 0, "tables": 0}


def test_nothing_to_quantize(tmp_path):
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
    path = tmp_path / "relu.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    done = anymps("compile", path, "--quantize", "int8")
    assert done.returncode == 0 and done.stdout.startswith("nothing to quantize: "), (done.stdout, done.stderr)
    assert (tmp_path / "relu.mps").exists() and "outputs" not in done.stdout


@pytest.mark.parametrize("args, told", [
    (["--quantize", "int3"], "--quantize"), (["--quantize", ""], "--quantize"), (["--quantize", "int8", "-O", "0"], "--quantize"),
    (["--seed", "1"], "--quantize"), (["--samples", "2"], "--quantize"), (["--dim", "N=2"], "--quantize"), (["-i", "ids=x.npy"], "--quantize"),
    (["--quantize", "int8", "--samples", "-1"], "--samples")])
def test_wrong_usage(model, tmp_path, args, told):
    done = anymps("compile", model, *args)
    assert done.returncode == 2 and told in done.stderr and not done.stdout, (done.returncode, done.stderr)
    assert not (tmp_path / "words.mps").exists()


def test_inputs_that_do_not_fit_leave_no_file(model, tmp_path):
    for args in (["--dim", "M=2"], ["-i", f"ids={tmp_path}/none.npy"], ["-i", f"x={model}"]):
        done = anymps("compile", model, "--quantize", "int8", *args)
        assert done.returncode == 1 and done.stderr, args
    assert not (tmp_path / "words.mps").exists()
