# SPDX-License-Identifier: Apache-2.0
"""What the backend loads: files, versions, configs that are whole, partial, missing or wrong."""
import shutil
import subprocess

import numpy as np
import pytest

from tests.doors.server.make_repository import Quoted, base, cpu, io, node, quoted, tensor
from tests.doors.server.servers import ROOT, backend_directory
from .calls import client, config, floats, infer, why_not

# The config of the backend's description, word for word.
EXAMPLE = """
name: "mps_model"
backend: "metal_mps"
max_batch_size: 8

input [
  {
    name: "input"
    data_type: TYPE_FP32
    dims: [ 3, 224, 224 ]
  }
]

output [
  {
    name: "output"
    data_type: TYPE_FP32
    dims: [ 1000 ]
  }
]

instance_group [
  {
    count: 1
    kind: KIND_GPU
    gpus: [ 0 ]
  }
]
"""


def relu(repository, name, settings=None, **more):
    """y = relu(x) for x of [N, 4]."""
    repository.model(name, [node("Relu", ["x"], ["y"])], [tensor("x", "FP32", ["N", 4])], [tensor("y", "FP32", ["N", 4])], settings, **more)


def relu_base(**more):
    return base(4, [io("x", "FP32", [4])], [io("y", "FP32", [4])], **more)


def test_the_example_of_the_description(repository, triton):
    """KIND_GPU is refused by Triton's core where there is no GPU: another config beside the model stands in for it."""
    rng = np.random.default_rng(1)
    weights = {"w": rng.standard_normal((8, 3, 7, 7)).astype(np.float32) / 10, "f": rng.standard_normal((8, 1000)).astype(np.float32)}
    nodes = [node("Conv", ["input", "w"], ["c"], strides=[16, 16]), node("GlobalAveragePool", ["c"], ["p"]), node("Flatten", ["p"], ["l"]),
             node("MatMul", ["l", "f"], ["output"])]
    repository.model("mps_model", nodes, [tensor("input", "FP32", ["N", 3, 224, 224])], [tensor("output", "FP32", ["N", 1000])], None, weights)
    repository.file("mps_model/config.pbtxt", EXAMPLE.encode())
    repository.file("mps_model/configs/cpu.pbtxt", EXAMPLE.replace("KIND_GPU", "KIND_CPU").replace("    gpus: [ 0 ]\n", "").encode())
    server = triton(repository, "--model-config-name=cpu")
    image = rng.standard_normal((2, 3, 224, 224)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(image, (7, 7), (2, 3))[:, :, ::16, ::16]
    expected = np.einsum("ncyxij,ocij->noyx", windows, weights["w"]).mean((2, 3)) @ weights["f"]
    for protocol in ("http", "grpc"):
        np.testing.assert_allclose(infer(server, "mps_model", protocol, input=image)["output"], expected, rtol=1e-3, atol=1e-3)


def test_onnx_mps_pte(repository, triton, convert):
    relu(repository, "onnx", {})
    relu(repository, "mps", {})
    folder = repository.folder / "mps" / "1"
    convert(folder / "model.onnx", folder / "model.mps")
    (folder / "model.onnx").unlink()
    # A folder called NAME.metal_mps needs no config: Triton takes the backend from the name.
    shutil.copytree(folder, repository.folder / "named.metal_mps" / "1")
    (repository.folder / "named.metal_mps" / "1" / "model.mps").rename(repository.folder / "named.metal_mps" / "1" / "model.metal_mps")
    relu(repository, "other.metal_mps")
    relu(repository, "renamed", {"default_model_filename": Quoted("net.onnx")})
    (repository.folder / "renamed" / "1" / "model.onnx").rename(repository.folder / "renamed" / "1" / "net.onnx")
    relu(repository, "bare")  # no config at all: Triton asks for the backend onnxruntime, which this one is installed as too
    program = ROOT / "tests" / "data" / "executorch" / "portable" / "dynamic.pte"
    repository.file("pte/1/model.pte", program.read_bytes())
    repository.config("pte", {})
    server = triton(repository)
    x = floats(3, 4)
    for name in ("onnx", "mps", "named.metal_mps", "other.metal_mps", "renamed", "bare"):
        np.testing.assert_array_equal(infer(server, name, x=x)["y"], np.maximum(x, 0), err_msg=name)
    metadata = client(server).get_model_metadata("pte")
    assert metadata["inputs"] and metadata["outputs"]


def test_missing_config_is_completed(repository, triton):
    relu(repository, "batched", {})
    repository.model("fixed", [node("Relu", ["x"], ["y"])], [tensor("x", "FP64", [2, 3])], [tensor("y", "FP64", [2, 3])], {})
    repository.model("rows", [node("Neg", ["x"], ["y"])], [tensor("x", "INT32", ["N"])], [tensor("y", "INT32", ["N"])], {})
    repository.model("free", [node("Identity", ["x"], ["y"])], [tensor("x", "BYTES", ["N", "M"])], [tensor("y", "BYTES", ["N", "M"])], {})
    repository.model("two_axes", [node("Relu", ["a"], ["c"]), node("Relu", ["b"], ["d"])],
                     [tensor("a", "FP32", ["N", 2]), tensor("b", "FP32", ["M", 2])], [tensor("c", "FP32", ["N", 2]), tensor("d", "FP32", ["M", 2])], {})
    relu(repository, "partial", {"max_batch_size": 1, "input": quoted([{"name": "x"}])})
    server = triton(repository)

    made = config(server, "batched")
    assert (made["max_batch_size"], made["backend"]) == (4, "metal_mps") and "dynamic_batching" in made
    assert [(t["name"], t["data_type"], t["dims"]) for t in made["input"] + made["output"]] == [("x", "TYPE_FP32", [4]), ("y", "TYPE_FP32", [4])]
    assert made["instance_group"][0]["kind"] == "KIND_CPU" and made["instance_group"][0]["count"] == 1
    made = config(server, "fixed")
    assert made["max_batch_size"] == 0 and made["input"][0]["dims"] == [2, 3] and made["input"][0]["data_type"] == "TYPE_FP64"
    made = config(server, "rows")
    assert made["input"][0]["dims"] == [1] and made["input"][0]["reshape"] == {"shape": []}
    assert config(server, "free")["output"][0]["data_type"] == "TYPE_STRING"
    assert config(server, "two_axes")["max_batch_size"] == 0
    assert config(server, "partial")["max_batch_size"] == 1 and "dynamic_batching" not in config(server, "partial")

    assert infer(server, "rows", x=np.int32([[5], [-6]]))["y"].tolist() == [[-5], [6]]
    assert infer(server, "fixed", x=-np.ones((2, 3)))["y"].tolist() == [[0] * 3] * 2
    c, d = infer(server, "two_axes", a=floats(3, 2), b=floats(1, 2)).values()
    assert c.shape == (3, 2) and d.shape == (1, 2)
    metadata = client(server).get_model_metadata("batched")
    assert metadata["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]


def test_default_batch_size_and_strict_config(repository, triton):
    relu(repository, "batched", {})
    server = triton(repository, "--backend-config=default-max-batch-size=16")
    assert config(server, "batched")["max_batch_size"] == 16
    server.stop()
    relu(repository, "whole", relu_base())
    server = triton(repository, "--disable-auto-complete-config", ready=False)
    assert infer(server, "whole", x=floats(1, 4))["y"].shape == (1, 4)
    assert "must specify" in why_not(server, "batched") or "unexpected" in why_not(server, "batched") or "not configured" in why_not(server, "batched")


WRONG = {
    "no_file": (relu_base(default_model_filename=Quoted("net.onnx")), "there is no file 'net.onnx'"),
    "type": (base(4, [io("x", "INT32", [4])], [io("y", "FP32", [4])]),
             "tensor 'x': the model has data-type TYPE_FP32 but the model configuration specifies TYPE_INT32"),
    "dims": (base(4, [io("x", "FP32", [5])], [io("y", "FP32", [4])]), "the model expects 2 dimensions (shape [-1,4])"),
    "input": (base(4, [io("z", "FP32", [4])], [io("y", "FP32", [4])]), "unexpected inference input 'z', allowed inputs are: x"),
    "output": (base(4, [io("x", "FP32", [4])], [io("z", "FP32", [4])]), "unexpected inference output 'z', allowed outputs are: y"),
    "level": (relu_base(parameters={"key": Quoted("optimization_level"), "value": {"string_value": Quoted("9")}}),
              "parameter 'optimization_level' must be a number in 0..1, '9' given"),
    "device": (relu_base(parameters={"key": Quoted("device"), "value": {"string_value": Quoted("mars")}}), "there is no device 'mars'"),
    "precision": (relu_base(parameters={"key": Quoted("precision"), "value": {"string_value": Quoted("fp8")}}), "'precision' must be fp32, fp16 or bf16"),
}


def test_what_is_wrong_is_said(repository, triton):
    for name, (settings, _) in WRONG.items():
        relu(repository, name, settings)
    repository.file("junk/1/model.onnx", b"this is no model")
    repository.config("junk", {})
    repository.config("empty", relu_base())
    (repository.folder / "empty" / "1").mkdir()
    relu(repository, "good", relu_base())
    server = triton(repository, ready=False)
    for name, (_, says) in WRONG.items():
        assert says in why_not(server, name), name
    assert "model 'junk', version 1, file 'model.onnx'" in why_not(server, "junk")
    assert "there is no model.mps, model.onnx, model.pte or model.metal_mps" in why_not(server, "empty")
    assert infer(server, "good", x=floats(1, 4))["y"].shape == (1, 4)


def test_versions(repository, triton):
    for version in (1, 3):
        repository.model("v", [node("Add", ["x", "c"], ["y"])], [tensor("x", "FP32", ["N", 1])], [tensor("y", "FP32", ["N", 1])],
                         base(4, [io("x", "FP32", [1])], [io("y", "FP32", [1])], version_policy={"all": {}}),
                         {"c": np.float32([version])}, versions=[version])
    server = triton(repository)
    x = np.float32([[1]])
    assert infer(server, "v", x=x)["y"] == 4 and infer(server, "v", version="1", x=x)["y"] == 2


def test_reload_while_it_runs(repository, triton):
    """A file that is overwritten does not change the model that runs; loading it again does."""
    relu(repository, "m", relu_base())
    server = triton(repository, "--model-control-mode=explicit", "--load-model=m")
    x = floats(1, 4)
    before = infer(server, "m", x=x)["y"]
    repository.model("m", [node("Neg", ["x"], ["y"])], [tensor("x", "FP32", ["N", 4])], [tensor("y", "FP32", ["N", 4])], None)
    np.testing.assert_array_equal(infer(server, "m", x=x)["y"], before)
    client(server).load_model("m")
    np.testing.assert_array_equal(infer(server, "m", x=x)["y"], -x)
    client(server).unload_model("m")


@pytest.mark.parametrize("level", ["0", "1"])
def test_parameters_and_cache(repository, triton, tmp_path, level):
    cache = repository.folder / "m" / "cache"
    settings = {"optimization_level": level, "threads": "1", "profile": "true", "cache_dir": "cache", "graph_cache": "2", "device": "cpu"}
    relu(repository, "m", relu_base(parameters=[{"key": Quoted(k), "value": {"string_value": Quoted(v)}} for k, v in settings.items()]))
    for _ in range(2):
        server = triton(repository, environment={"TRITON_MPS_VERBOSE": "1"})
        for rows in (1, 2, 3, 4):
            np.testing.assert_array_equal(infer(server, "m", x=floats(rows, 4))["y"], np.maximum(floats(rows, 4), 0))
        server.stop()
        log = server.log.read_text()
        assert "profile of model 'm'" in log and "relu" in log
        assert "plan cache: 2 of 2 shapes" in log
        assert f"optimization level {level}, 1 threads" in log
    assert "compiled before" in log and len(list(cache.glob("*.mps"))) == 1


def test_precision(repository, triton, models):
    """Half precision is near, and not the same."""
    for precision in ("fp32", "fp16", "bf16"):
        models.mlp(repository, precision, parameters={"key": Quoted("precision"), "value": {"string_value": Quoted(precision)}})
    server = triton(repository)
    x = floats(2, 16) / 3
    exact = models.mlp_answer(x)
    np.testing.assert_allclose(infer(server, "fp32", x=x)["y"], exact, rtol=1e-4, atol=1e-6)
    for precision, tolerance in (("fp16", 2e-2), ("bf16", 2e-1)):
        y = infer(server, precision, x=x)["y"]
        assert y.dtype == np.float32 and not np.array_equal(y, infer(server, "fp32", x=x)["y"])
        np.testing.assert_allclose(y, exact, rtol=tolerance, atol=tolerance)


def test_parameters_of_the_command_line(repository, triton, tmp_path):
    relu(repository, "m", relu_base())
    server = triton(repository, "--backend-config=metal_mps,threads=1", f"--backend-config=metal_mps,cache_dir={tmp_path / 'c'}")
    assert infer(server, "m", x=floats(1, 4))["y"].shape == (1, 4)
    assert len(list((tmp_path / "c").glob("*.mps"))) == 1
    assert "parameters" not in config(server, "m") or "threads" not in config(server, "m")["parameters"]


CUSTOM_OP = r"""
#include "anymps/anymps.h"
static const char* infer(const amps_custom_call* call) {
  if (call->input_count != 2) return "takes two tensors";
  call->outputs[0] = call->inputs[0];
  return 0;
}
static const char* run(const amps_custom_call* call) {
  const float *a = call->inputs[0].data, *b = call->inputs[1].data;
  float* y = call->outputs[0].data;
  long count = 1;
  for (int i = 0; i < call->inputs[0].rank; ++i) count *= call->inputs[0].dims[i];
  for (long i = 0; i < count; ++i) y[i] = a[i] * (float)call->attrs[0].f - b[i];
  return 0;
}
const char* amps_op_library(amps_status (*add)(const amps_custom_op*)) {
  amps_custom_op op = {sizeof(op), "my.ops.ScaledSub", infer, run, 0};
  return add(&op) == AMPS_OK ? 0 : "cannot add";
}
"""


def test_kernels_of_your_own(repository, triton, tmp_path):
    """model_operations names a library out of the operator's folder; its op is found in the ONNX file."""
    from onnx import helper
    (tmp_path / "op.c").write_text(CUSTOM_OP)
    (tmp_path / "ops").mkdir()
    nodes = [helper.make_node("ScaledSub", ["a", "b"], ["t"], domain="my.ops", factor=2.5), node("Relu", ["t"], ["y"])]
    graph = helper.make_graph(nodes, "own", [tensor("a", "FP32", ["N", 3]), tensor("b", "FP32", ["N", 3])], [tensor("y", "FP32", ["N", 3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)], ir_version=9)
    repository.file("own/1/model.onnx", model.SerializeToString())
    repository.file("without/1/model.onnx", model.SerializeToString())
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{ROOT / 'include'}", "-o", tmp_path / "ops" / "libown.so", tmp_path / "op.c"], check=True)
    repository.config("own", {"model_operations": {"op_library_filename": Quoted("libown.so")}})
    repository.config("without", {"model_operations": {"op_library_filename": Quoted("libnone.so")}})
    server = triton(repository, f"--backend-config=metal_mps,op_library_directory={tmp_path / 'ops'}", ready=False)
    assert config(server, "own")["max_batch_size"] == 4
    a, b = floats(2, 3), floats(2, 3) + 1
    np.testing.assert_allclose(infer(server, "own", a=a, b=b)["y"], np.maximum(a * 2.5 - b, 0))
    assert "op library 'libnone.so' cannot be loaded" in why_not(server, "without")


def test_the_folder_of_backends():
    assert (backend_directory() / "metal_mps" / "libtriton_metal_mps.so").exists() and cpu()
