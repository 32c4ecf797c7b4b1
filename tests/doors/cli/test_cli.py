# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: output, JSON, errors and exit codes."""
import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[3]
ANYMPS = Path(os.environ.get("ANYMPS_BUILD_DIR", ROOT / "build")) / "bin" / "anymps"


def anymps(*args, env=None, stdin=None):
    return subprocess.run([str(ANYMPS), *map(str, args)], capture_output=True, text=True, env=env, input=stdin, timeout=120)


@pytest.fixture
def model(tmp_path):
    """y = softmax(relu(x @ w)), x: f32[N, 3]"""
    w = helper.make_tensor("w", TensorProto.FLOAT, [3, 4], np.arange(12, dtype=np.float32))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], name="product"),
             helper.make_node("Relu", ["m"], ["r"], name="positive"),
             helper.make_node("Softmax", ["r"], ["y"], name="share", axis=-1)]
    graph = helper.make_graph(nodes, "tiny", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])], [w])
    path = tmp_path / "tiny.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_version_and_help():
    assert anymps("--version").stdout.startswith("anymps 0.")
    text = anymps("--help").stdout
    for command in ("run", "bench", "profile", "inspect", "compile", "convert", "ops", "doctor", "completion"):
        assert command in text
        assert anymps(command, "--help").returncode == 0


def test_run_shows_outputs_time_memory_and_kernels(model):
    done = anymps("run", model, "--random-inputs", "--dim", "N=2", "--top", "2")
    assert done.returncode == 0, done.stderr
    assert "y: f32[2,4]" in done.stdout and "class" in done.stdout
    assert "memory:" in done.stdout and "kernels:" in done.stdout


def test_run_computes(model, tmp_path):
    x = np.array([[1, -2, 0.5]], np.float32)
    np.save(tmp_path / "x.npy", x)
    done = anymps("run", model, "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "out", "--json", "--check")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["outputs"]["y"]["shape"] == [1, 4]
    m = np.maximum(x @ np.arange(12, dtype=np.float32).reshape(3, 4), 0)
    expected = np.exp(m - m.max()) / np.exp(m - m.max()).sum()
    np.testing.assert_allclose(np.load(tmp_path / "out" / "y.npy"), expected, rtol=1e-5)


def test_run_feeds_an_input_that_has_a_default(tmp_path):
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("w", "x")]
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "g", infos,
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
                              [helper.make_tensor("w", TensorProto.FLOAT, [2], [2, 3])])
    model = tmp_path / "old.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=3), model)
    np.save(tmp_path / "x.npy", np.array([10, 100], np.float32))
    np.save(tmp_path / "w.npy", np.array([5, 7], np.float32))
    x, w = (["--input", f"{name}={tmp_path / name}.npy"] for name in "xw")
    for args, expected in ((x, [20, 300]), (x + w, [50, 700]), (w + x, [50, 700])):
        done = anymps("run", model, *args, "--output-dir", tmp_path)
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)
    done = anymps("run", model, *w)
    assert done.returncode == 1 and "x: f32[2]" in done.stderr


@pytest.mark.parametrize("args,words", [
    (["--input", "x=/no/such.npy"], ["/no/such.npy"]),
    (["--input", "z=/dev/null", "--random-inputs"], ["no input 'z'"]),
    ([], ["x: f32[N, 3]", "--random-inputs"]),
    (["--random-inputs", "--dim", "M=2"], ["--dim", "'M'", "there is N"]),
])
def test_errors_say_what_to_do(model, args, words):
    done = anymps("run", model, *args)
    assert done.returncode == 1
    for word in words:
        assert word in done.stderr


def test_wrong_shape_names_the_input(model, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 5), np.float32))
    done = anymps("run", model, "--input", f"x={tmp_path / 'x.npy'}")
    assert done.returncode == 1
    assert "input 'x' must be f32[N, 3], f32[1, 5] given" in done.stderr


@pytest.mark.parametrize("content", [b"", b"garbage" * 100, b"\x08\x08" * 50, b"\x93NUMPY"])
def test_bad_model_files(tmp_path, content):
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    done = anymps("run", path, "--random-inputs")
    assert done.returncode == 1 and "bad.onnx" in done.stderr


def test_missing_model():
    done = anymps("inspect", "/no/such/model.onnx")
    assert done.returncode == 1 and "/no/such/model.onnx" in done.stderr


def test_bench_prints_percentiles_and_json(model):
    done = anymps("bench", model, "-n", "5", "--threads", "1")
    assert done.returncode == 0 and "median" in done.stdout and "p99" in done.stdout
    # One thread, which is the caller, has nobody to wait for.
    assert re.search(r"  \d+\.\d/s  threads waited 0 %  peak \d+\.\d MiB\n$", done.stdout), done.stdout
    report = json.loads(anymps("bench", model, "-n", "5", "-c", "2", "--json").stdout)
    assert report["runs"] == 10 and report["min_ms"] <= report["median_ms"] <= report["max_ms"]
    assert report["peak_rss_mb"] > 1 and 0 <= report["threads_waited"] <= 1


def test_bench_worker_speaks_the_protocol(model, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    commands = ["version", "run 1", f"input x {tmp_path / 'x.npy'}", f"load {model} 1", "run 3", f"output {tmp_path}",
                "dance", "quit"]
    done = anymps("bench", "--worker", stdin="\n".join(commands) + "\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[0]["runtime"] == "anymps"
    assert "error" in answers[1]
    assert answers[2] == {"ok": True}
    assert answers[3]["load_ms"] > 0
    assert len(answers[4]["ms"]) == 3
    assert answers[5] == {"outputs": ["y"]}
    assert "error" in answers[6] and len(answers) == 7
    assert np.load(tmp_path / "y.npy").shape == (2, 4)


def test_profile_table_json_and_trace(model, tmp_path):
    trace = tmp_path / "trace.json"
    done = anymps("profile", model, "-n", "2", "--trace", trace)
    assert done.returncode == 0 and "GFLOP/s" in done.stdout and "product" in done.stdout
    events = json.loads(trace.read_text())["traceEvents"]
    assert sum(e["cat"] == "run" for e in events) == 2
    assert all({"name", "ph", "ts", "dur", "pid", "tid"} <= e.keys() for e in events)
    rows = json.loads(anymps("profile", model, "-n", "2", "--json").stdout)
    assert {"node", "kernel", "total_ns", "bytes", "flops"} <= rows["kernels"][0].keys()
    matmul = next(k for k in rows["kernels"] if k["op"] == "matmul")
    assert matmul["flops"] >= 2 * 3 * 4 and matmul["calls"] == 2


def test_inspect(model, tmp_path):
    summary = anymps("inspect", model).stdout
    assert "x: f32[N, 3]" in summary and "matmul" in summary
    assert "softmax" in anymps("inspect", model, "--graph").stdout
    assert json.loads(anymps("inspect", model, "--json").stdout)["nodes"]
    assert "fuse_matmul" in anymps("inspect", model, "--passes").stdout
    plan = anymps("inspect", model, "--plan", "--dim", "N=4").stdout
    assert "cpu:" in plan
    memory = json.loads(anymps("inspect", model, "--memory", "--json").stdout)
    assert memory["arena_bytes"] <= memory["unshared_bytes"] or memory["unshared_bytes"] == 0
    picture = tmp_path / "graph.svg"
    assert anymps("inspect", model, "--svg", picture).returncode == 0
    assert picture.read_text().startswith("<svg") or "<svg" in picture.read_text()[:200]


def test_convert_there_and_back(model, tmp_path):
    mps, onnx = tmp_path / "model.mps", tmp_path / "again.onnx"
    assert anymps("convert", model, "-o", mps).returncode == 0
    assert anymps("convert", mps, "-o", onnx).returncode == 0
    direct, loaded = (json.loads(anymps("run", m, "--random-inputs", "--json").stdout) for m in (model, onnx))
    assert direct["outputs"] == loaded["outputs"]
    assert anymps("convert", mps, "-o", mps).returncode == 2
    for command, name in (("convert", "x.pte"), ("compile", "x.onnx")):
        done = anymps(command, model, "-o", tmp_path / name)
        assert done.returncode == 2 and "ends in" in done.stderr and not (tmp_path / name).exists()


def test_compile_and_run_the_result(model, tmp_path):
    out = tmp_path / "tiny.mps"
    done = anymps("compile", model, "-o", out)
    assert done.returncode == 0, done.stderr
    direct = json.loads(anymps("run", model, "--random-inputs", "--json").stdout)
    loaded = json.loads(anymps("run", out, "--random-inputs", "--json").stdout)
    assert direct["outputs"] == loaded["outputs"]
    assert anymps("compile", out, "-o", out).returncode == 2


def test_an_mps_file_may_hold_plain_onnx(model, tmp_path):
    path = tmp_path / "plain.mps"
    path.write_bytes(model.read_bytes())
    assert anymps("run", path, "--random-inputs").returncode == 0


def test_ops_formats():
    text = anymps("ops").stdout
    assert "softmax(x; axis=-1)" in text
    assert json.loads(anymps("ops", "--json").stdout)
    assert anymps("ops", "--markdown").stdout.startswith("# Op reference")
    assert anymps("ops", "--matrix").stdout.startswith("# Support matrix")


def test_doctor():
    done = anymps("doctor")
    assert done.returncode == 0 and "FAILED" not in done.stdout
    report = json.loads(anymps("doctor", "--json").stdout)
    assert {d["name"] for d in report["devices"]} >= {"cpu", "reference", "null"}
    (cpu,) = (d["description"] for d in report["devices"] if d["name"] == "cpu")
    assert "oneDNN 3." in cpu and "Highway 1." in cpu
    assert report["compiler"].split()[0] in ("gcc", "Clang", "Debian") and report["load"] >= 0
    assert any(v["name"] == "MPS_MAX_POOL_SIZE" for v in report["environment"])


def test_doctor_tells_the_cores_of_this_process():
    """On one core of the machine's, with more threads than that."""
    cpus, env = os.sched_getaffinity(0), {**os.environ, "ANYMPS_NUM_THREADS": "3"}
    os.sched_setaffinity(0, [max(cpus)])
    try:
        report, text = json.loads(anymps("doctor", "--json", env=env).stdout), anymps("doctor", env=env).stdout
    finally:
        os.sched_setaffinity(0, cpus)
    assert (report["affinity"], report["physical_cores"], report["usable_cores"]) == (1, 1, 1)
    assert report["cores"] >= len(cpus) and report["cpu_quota"] >= 0
    assert report["busy_elsewhere"] == -1 or 0 <= report["busy_elsewhere"] <= 1
    assert f"machine: {report['cores']} cores, " in text and "\ncores for this process: 1 (affinity 1, 1 physical, quota " in text
    assert "  cpu uses 3 threads, more than can run at once: ANYMPS_NUM_THREADS=1\n" in text and "reference uses" not in text


def header_dtypes():
    header = (ROOT / "include" / "anymps" / "anymps.h").read_text()
    return [name.lower() for name in re.findall(r"^  AMPS_(\w+) = \d+,", header.split("typedef enum amps_dtype {")[1].split("}")[0], re.M)]


def test_doctor_tests_every_dtype_on_every_device():
    text = anymps("doctor").stdout
    for device in json.loads(anymps("doctor", "--json").stdout)["devices"]:
        if device["name"] == "null":
            assert "self_test" not in device
            continue
        assert device["self_test"] == dict.fromkeys(header_dtypes(), "ok")
    assert text.count("self-test ok: " + ", ".join(header_dtypes()) + "\n") == 2


def test_doctor_fails_when_a_dtype_computes_wrongly(tmp_path):
    """A library in between turns a bit of every result in f16."""
    (tmp_path / "wrong.c").write_text("""
#define _GNU_SOURCE
#include <dlfcn.h>
#include "anymps/anymps.h"
amps_status amps_tensor_to_host(const amps_tensor* tensor, void* data, size_t bytes) {
  amps_status (*next)(const amps_tensor*, void*, size_t) = dlsym(RTLD_NEXT, "amps_tensor_to_host");
  const amps_status status = next(tensor, data, bytes);
  if (amps_tensor_dtype(tensor) == AMPS_F16) *(char*)data ^= 1;
  return status;
}
""")
    subprocess.run(["gcc", "-shared", "-fPIC", f"-I{ROOT / 'include'}", tmp_path / "wrong.c", "-o", tmp_path / "wrong.so", "-ldl"], check=True)
    env = {**os.environ, "LD_PRELOAD": str(tmp_path / "wrong.so")}
    done = anymps("doctor", env=env)
    assert done.returncode == 1 and "self-test failed for f16 on cpu, f16 on reference" in done.stderr, done.stderr
    assert done.stdout.count("self-test FAILED: f16: the result has the bits 4001, 4600, 4a00 instead of 4000, 4600, 4a00") == 2
    done = anymps("doctor", "--json", env=env)
    assert done.returncode == 1 and json.loads(done.stdout)["devices"][0]["self_test"]["f16"].startswith("the result")


def one_node(path, op, kind, output=None, **attrs):
    """y = op(x), x and y with four elements each."""
    output = output or helper.make_tensor_value_info("y", kind, [4])
    kind = kind if op == "StringConcat" else TensorProto.FLOAT
    inputs = ["x", "x"] if op in ("StringConcat", "SequenceConstruct") else ["x"]
    graph = helper.make_graph([helper.make_node(op, inputs, ["y"], **attrs)], "one",
                              [helper.make_tensor_value_info("x", kind, [4])], [output])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), path)
    return path


@pytest.mark.parametrize("kind", ["INT4", "FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT4E2M1", "FLOAT16", "BFLOAT16", "INT64"])
def test_numbers_of_every_type_are_shown_and_written(tmp_path, kind):
    path = one_node(tmp_path / "m.onnx", "Cast", getattr(TensorProto, kind), to=getattr(TensorProto, kind))
    np.save(tmp_path / "x.npy", np.float32([1, 2, -3, 4]))
    done = anymps("run", path, "-i", f"x={tmp_path}/x.npy", "-o", tmp_path, "--json")
    shown = json.loads(done.stdout)["outputs"]["y"]
    assert (shown["min"], shown["max"], shown["mean"]) == (-3, 4, 1)
    written = np.load(tmp_path / "y.npy")
    if kind == "BFLOAT16":  # NumPy has no code for it: raw words
        written = (written.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    assert written.tolist() == [1, 2, -3, 4]


def test_strings_go_in_and_out(tmp_path):
    path = one_node(tmp_path / "m.onnx", "StringConcat", TensorProto.STRING)
    words = ["a", "", "\u00e9t\u00e9", "\U0001f600!"]
    np.save(tmp_path / "x.npy", np.array(words))
    done = anymps("run", path, "-i", f"x={tmp_path}/x.npy", "-o", tmp_path, "--json")
    assert json.loads(done.stdout)["outputs"]["y"]["strings"] == [w + w for w in words]
    assert np.load(tmp_path / "y.npy").tolist() == [w + w for w in words]
    for command in ("run", "bench", "profile"):
        assert anymps(command, path, "--random-inputs").returncode == 0


def test_lists_are_shown_item_by_item(tmp_path):
    output = helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, [4])
    path = one_node(tmp_path / "m.onnx", "SequenceConstruct", TensorProto.FLOAT, output)
    np.save(tmp_path / "x.npy", np.float32([1, 2, -3, 4]))
    done = anymps("run", path, "-i", f"x={tmp_path}/x.npy", "-o", tmp_path)
    assert done.returncode == 0 and "y.0: f32[4]  min -3" in done.stdout and "y.1: f32[4]" in done.stdout
    assert np.load(tmp_path / "y.1.npy").tolist() == [1, 2, -3, 4]
    assert anymps("bench", path).returncode == 0


def test_ops_tells_of_one():
    text = anymps("ops", "softmax").stdout
    assert text.startswith("### softmax\n") and "softmax(x; axis=-1) -> y" in text and text.count("###") == 1
    done = anymps("ops", "softm")
    assert done.returncode == 1 and "no op 'softm'; there is log_softmax, softmax" in done.stderr
    assert anymps("ops", "softmax", "--json").returncode == 2


@pytest.mark.parametrize("variable, value, told", [
    ("ANYMPS_CHECK", "1", "it takes reference"), ("ANYMPS_VERBOSE", "all", "it takes dispatch, cache, check"),
    ("ANYMPS_ISA", "avx1024", "it takes sse4, avx2, avx512, amx"), ("ANYMPS_PASSES", "-fuse", "there is no pass 'fuse'"),
    ("ANYMPS_DENORMALS", "sometimes", "it takes flush, keep"), ("ANYMPS_DENORMALS", "keep,flush", "it takes one word"),
    ("ANYMPS_TUNE", "yes", "it takes on, off"), ("ANYMPS_TUNE", "on,off", "it takes one word"),
    ("ANYMPS_PASSES", "layout", "needs a '-'"), ("ANYMPS_NUM_THREADS", "two", "is not an integer")])
def test_a_variable_with_a_wrong_value_is_an_error(model, variable, value, told):
    done = anymps("run", model, "--random-inputs", env={**os.environ, variable: value})
    assert done.returncode == 1 and variable in done.stderr and told in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    text = anymps("completion", shell).stdout
    assert "inspect" in text and "threads" in text
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0


def test_verbose_dispatch_tells_choice_and_refusals(model):
    done = anymps("run", model, "--random-inputs", env={**os.environ, "ANYMPS_VERBOSE": "dispatch"})
    assert "dispatch: matmul" in done.stderr and "-> cpu:" in done.stderr


def test_dump_passes(model):
    done = anymps("run", model, "--random-inputs", env={**os.environ, "ANYMPS_DUMP": "passes"})
    assert "--- after fuse_matmul" in done.stderr


def test_bad_environment_is_an_error(model):
    done = anymps("run", model, "--random-inputs", env={**os.environ, "MPS_MAX_POOL_SIZE": "plenty"})
    assert done.returncode == 1 and "MPS_MAX_POOL_SIZE='plenty'" in done.stderr
