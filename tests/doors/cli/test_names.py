# SPDX-License-Identifier: Apache-2.0
"""Names of any bytes: terminals are shown them and do not obey them, JSON and SVG stay valid, files get their own names."""
import json
import os
import re
import subprocess
import xml.dom.minidom

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.doors.cli.test_cli import ANYMPS, ROOT

SOFTMAX = ROOT / "examples" / "models" / "softmax.onnx"
ESCAPES = ["in\x1b[2Jput", "out\nput", "no@@de\x7f", "dim\x1b]0;title\x07", "mid\rdle", "graph\x1b[31m", "c1\u009b2J"]


def anymps(*args, env=None, cwd=None):
    """Bytes, since that is what a terminal gets."""
    return subprocess.run([ANYMPS, *args], capture_output=True, timeout=120, env=env, cwd=cwd)


def assert_tame(text):
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", text), text
    text.decode()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """y = softmax(relu(x @ w)) with control characters and newlines in its names and in that of its file."""
    x, y, node, dim, middle, graph, w = ESCAPES
    nodes = [helper.make_node("MatMul", [x, w], ["m"], name=node), helper.make_node("Relu", ["m"], [middle], name=middle),
             helper.make_node("Softmax", [middle], [y], name=y, axis=-1)]
    made = helper.make_graph(nodes, graph, [helper.make_tensor_value_info(x, TensorProto.FLOAT, [dim, 64])],
                             [helper.make_tensor_value_info(y, TensorProto.FLOAT, [dim, 64])],
                             [helper.make_tensor(w, TensorProto.FLOAT, [64, 64], np.ones(4096, np.float32))])
    data = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    path = tmp_path_factory.mktemp("names") / "model\x1b[2J\n.onnx"
    path.write_bytes(data)
    return path


def test_names_that_are_no_utf8(hostile, tmp_path):
    """ONNX has no such names: the file is refused, and the message shows its name."""
    path = os.fsencode(tmp_path) + b"/\xff\x1b.onnx"
    with open(path, "wb") as out:
        out.write(hostile.read_bytes().replace(b"no@@de", b"no\xff\xfede"))
    done = anymps(b"run", path, b"--random-inputs")
    assert done.returncode == 1 and b"/\\xff\\x1b.onnx: " in done.stderr and b"not valid UTF-8" in done.stderr
    assert_tame(done.stderr)


@pytest.mark.parametrize("args", [
    ["run", "--random-inputs"], ["run"], ["run", "--random-inputs", "--profile"], ["run", "--random-inputs", "--check"],
    ["run", "--random-inputs", "--dim", "dim\x1b]0;title\x07=2"], ["run", "--random-inputs", "--dim", "M\x1b=2"],
    ["run", "--random-inputs", "-O", "0", "--device", "reference"], ["run", "--\x1b[2J"], ["run", "--threads", "\x1b[2J"], ["run", "--input", "\x1b[2J"],
    ["run", "--input", "\x1b[2J=\x1b[2J.npy"], ["profile"], ["bench", "-n", "1"], ["inspect"], ["inspect", "--graph"], ["inspect", "--compiled"],
    ["inspect", "--plan"], ["inspect", "--memory"], ["inspect", "--passes"], ["compile"], ["\x1b[2J"]], ids=lambda args: " ".join(args).encode("unicode_escape").decode())
def test_terminals_are_not_obeyed(hostile, args, tmp_path):
    loud = {**os.environ, "ANYMPS_VERBOSE": "dispatch,cache", "ANYMPS_DUMP": "passes"}
    done = anymps(args[0], hostile, *args[1:], env=loud, cwd=tmp_path)
    assert_tame(done.stdout + done.stderr)
    assert done.returncode in (0, 1, 2)
    if args in (["inspect"], ["run"], ["inspect", "--graph"]):
        assert b"in\\x1b[2Jput" in done.stdout + done.stderr
    if args == ["run", "--random-inputs"]:
        assert b"model\\x1b[2J\\x0a.onnx on cpu" in done.stdout and b"  out\\x0aput: f32[1,64]" in done.stdout
    if args == ["profile"]:
        assert b"no@@de\\x7f" in done.stdout


@pytest.mark.parametrize("args", [["run", "--random-inputs", "--profile"], ["bench", "-n", "1"], ["profile"], ["inspect"], ["inspect", "--compiled"],
                                  ["inspect", "--plan"], ["inspect", "--memory"], ["inspect", "--passes"]], ids=" ".join)
def test_json_stays_json(hostile, args):
    done = anymps(args[0], hostile, *args[1:], "--json")
    assert done.returncode == 0, done.stderr
    assert_tame(done.stdout)
    assert json.loads(done.stdout)


def test_pictures_and_traces_stay_valid(hostile, tmp_path):
    for compiled in ([], ["--compiled"]):
        assert anymps("inspect", hostile, "--svg", tmp_path / "g.svg", *compiled).returncode == 0
        xml.dom.minidom.parse(str(tmp_path / "g.svg"))
    assert anymps("profile", hostile, "--trace", tmp_path / "t.json").returncode == 0
    assert json.loads((tmp_path / "t.json").read_text())


@pytest.mark.parametrize("name", [b"\xff\xfe.onnx", b"a\nb.onnx", b"\x1b[2J.onnx", b"-.onnx", " ä.onnx".encode()])
def test_files_of_any_name(tmp_path, name):
    path = os.fsencode(tmp_path) + b"/" + name
    with open(path, "wb") as out:
        out.write(SOFTMAX.read_bytes())
    for args in ([b"run", path, b"--random-inputs"], [b"inspect", path], [b"convert", path, b"-o", path + b".mps"], [b"compile", path]):
        done = anymps(*args)
        assert done.returncode == 0, done.stderr
        assert_tame(done.stdout + done.stderr)
    missing = anymps(b"run", path + b"x")
    assert missing.returncode == 1 and b"cannot open" in missing.stderr
    assert_tame(missing.stderr)
    assert anymps(b"run", b"x" * 5000).returncode == 1


def outputs_model(path, names):
    """An output for each name: name = x + its number."""
    nodes, constants = [], []
    for i, name in enumerate(names):
        constants.append(helper.make_tensor(f"c{i}", TensorProto.FLOAT, [1], [float(i)]))
        nodes.append(helper.make_node("Add", ["x", f"c{i}"], [name], name=f"n{i}"))
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in names]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])], outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_every_output_has_a_file_of_its_own(tmp_path):
    long = "l" * 300
    files = {"y": "y", "y.0": "y.0", "a_b": "a_b", "a/b": "a%2Fb", "a%2Fb": "a%252Fb", "a\nb": "a%0Ab", "a b": "a b", "é/": "é%2F", "..": "%2E.",
             "../up": "%2E.%2Fup", ".": "%2E", ".hidden": "%2Ehidden", "/etc": "%2Fetc", "a~2": "a%7E2", "\x1b[2J": "%1B[2J", "-o": "-o",
             long: None, long + "1": None, long + "2": None, "/" * 100: None, "é" * 150: None}
    path = outputs_model(tmp_path / "m.onnx", list(files))
    np.save(tmp_path / "x.npy", np.zeros(1, np.float32))
    out = tmp_path / "out"
    done = anymps("run", path, "-i", f"x={tmp_path}/x.npy", "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)["outputs"]) == list(files)
    found = {os.fsdecode(name): np.load(out / name).item() for name in os.listdir(out)}
    assert sorted(found.values()) == list(range(len(files)))
    for i, (name, file) in enumerate(files.items()):
        if file is not None:
            assert found[file + ".npy"] == i, name
    assert os.listdir(tmp_path / "out" / "..") and sorted(os.listdir(tmp_path)) == ["m.onnx", "out", "x.npy"]


def test_an_item_of_a_list_and_an_output_of_its_name(tmp_path):
    nodes = [helper.make_node("SequenceConstruct", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y.0"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
                              [helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, [1]),
                               helper.make_tensor_value_info("y.0", TensorProto.FLOAT, [1])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.ones(1, np.float32))
    done = anymps("run", tmp_path / "m.onnx", "-i", f"x={tmp_path}/x.npy", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert sorted(np.load(tmp_path / "out" / name).item() for name in os.listdir(tmp_path / "out")) == [-1, 1]
