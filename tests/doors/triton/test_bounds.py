# SPDX-License-Identifier: Apache-2.0
"""What docs/guides/triton.md says under "Who may do what": each bound is tried in a real tritonserver, by a model repository and by
a load request, and the server goes on afterwards."""
import json
import subprocess

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from tests.doors.server.make_repository import Quoted, base, io, node, tensor
from tests.doors.server.servers import ROOT
from .calls import client, floats, infer, why_not
from .test_load import CUSTOM_OP, relu, relu_base


def parameter(key, value):
    return {"parameters": {"key": Quoted(key), "value": {"string_value": Quoted(value)}}}


def library(name):
    return {"model_operations": {"op_library_filename": Quoted(name)}}


@pytest.fixture
def outside(tmp_path, repository):
    """A folder that no model has any business with: a library that would load, and a model that would run."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (tmp_path / "op.c").write_text(CUSTOM_OP + '__attribute__((constructor)) static void ran(void) { fclose(fopen(MARK, "w")); }\n')
    subprocess.run(["cc", "-shared", "-fPIC", "-include", "stdio.h", f'-DMARK="{folder}/ran"', f"-I{ROOT / 'include'}", "-o", folder / "libown.so",
                    tmp_path / "op.c"], check=True)
    relu(repository, "good", relu_base())
    (folder / "model.onnx").write_bytes((repository.folder / "good" / "1" / "model.onnx").read_bytes())
    (folder / "weights").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    return folder


def lives_on(server):
    np.testing.assert_array_equal(infer(server, "good", x=floats(2, 4))["y"], np.maximum(floats(2, 4), 0))


def test_a_repository_brings_no_code(repository, triton, outside):
    """Op libraries come out of the operator's folders alone, wherever a config points."""
    operators = outside.parent / "operators"
    operators.mkdir()
    (operators / "link.so").symlink_to(outside / "libown.so")
    cases = {"absolute": str(outside / "libown.so"), "up": "../../outside/libown.so", "beside": "libown.so", "link": "link.so"}
    for name, path in cases.items():
        relu(repository, name, relu_base(**library(path)))
    for folder in ("beside", "beside/1"):
        (repository.folder / folder / "libown.so").write_bytes((outside / "libown.so").read_bytes())
    for flags in ([], [f"--backend-config=metal_mps,op_library_directory={operators}"]):
        server = triton(repository, *flags, ready=False)
        for name in cases:
            assert "op library" in why_not(server, name) and "cannot be loaded" in why_not(server, name), name
        lives_on(server)
        server.stop()
    assert not (outside / "ran").exists()


def test_a_repository_writes_nothing_elsewhere(repository, triton, outside):
    (repository.folder / "good" / "away").symlink_to(outside)
    cases = {"absolute": str(outside / "cache"), "up": "../../outside/cache", "into_a_version": "1", "into_another": "../good/1"}
    for name, path in cases.items():
        relu(repository, name, relu_base(**parameter("cache_dir", path)))
    relu(repository, "link", relu_base(**parameter("cache_dir", "away/cache")))
    (repository.folder / "link" / "away").symlink_to(outside)
    before = sorted(p for p in repository.folder.rglob("*"))
    server = triton(repository, ready=False)
    for name in (*cases, "link"):
        assert "'cache_dir'" in why_not(server, name), name
    lives_on(server)
    assert not (outside / "cache").exists() and sorted(p for p in repository.folder.rglob("*")) == before


def test_a_repository_reads_nothing_elsewhere(repository, triton, outside):
    """Neither a file that the config names nor weights that the model names."""
    from onnx import TensorProto, helper
    for name, path in (("up", "../../../outside/model.onnx"), ("absolute", str(outside / "model.onnx"))):
        relu(repository, name, relu_base(default_model_filename=Quoted(path)))
    for name, path in (("weights", "../../../outside/weights"), ("linked_weights", "weights")):
        weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
        weights.external_data.add(key="location", value=path)
        graph = helper.make_graph([node("Add", ["x", "w"], ["y"])], "g", [tensor("x", "FP32", ["N", 4])], [tensor("y", "FP32", ["N", 4])], [weights])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        repository.file(f"{name}/1/model.onnx", model.SerializeToString())
        repository.config(name, relu_base())
    (repository.folder / "linked_weights" / "1" / "weights").symlink_to(outside / "weights")
    server = triton(repository, ready=False)
    for name in ("up", "absolute", "weights", "linked_weights"):
        assert name in why_not(server, name), name
        with pytest.raises(InferenceServerException):
            infer(server, name, x=floats(1, 4))
    lives_on(server)


def test_a_load_request_gets_no_further(repository, triton, outside):
    """Whoever may load models sends configs and files; the bounds are those of the repository."""
    server = triton(repository, "--model-control-mode=explicit", "--load-model=good")
    config = {"backend": "metal_mps", "max_batch_size": 4, "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [4]}],
              "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [4]}]}
    sent = {"file:1/model.onnx": (outside / "model.onnx").read_bytes(), "file:1/libown.so": (outside / "libown.so").read_bytes()}
    using = client(server)
    for change, says in (({"model_operations": {"op_library_filename": [str(outside / "libown.so")]}}, "op library"),
                         ({"model_operations": {"op_library_filename": ["libown.so"]}}, "op library"),
                         ({"parameters": {"cache_dir": {"string_value": str(outside / "cache")}}}, "cache_dir"),
                         ({"default_model_filename": str(outside / "model.onnx")}, "default_model_filename")):
        for name, files in (("good", None), ("sent", sent)):
            with pytest.raises(InferenceServerException, match=says):
                using.load_model(name, config=json.dumps({**config, **change}), files=files)
    lives_on(server)
    assert not (outside / "ran").exists() and not (outside / "cache").exists()


def test_a_request_that_asks_for_too_much_fails_alone(repository, triton):
    """Shapes that come out of a request's own numbers: no memory is there for them, and nobody else notices."""
    relu(repository, "good", relu_base())
    repository.model("filled", [node("ConstantOfShape", ["shape"], ["y"])], [tensor("shape", "INT64", [2])], [tensor("y", "FP32", ["N", "M"])],
                     base(0, [io("shape", "INT64", [2])], [io("y", "FP32", [-1, -1])]))
    server = triton(repository)
    assert infer(server, "filled", shape=np.int64([2, 3]))["y"].shape == (2, 3)
    for shape in ([1 << 40, 1 << 10], [1 << 62, 1 << 62], [-5, 3], [1 << 20, 1 << 24]):
        with pytest.raises(InferenceServerException):
            infer(server, "filled", shape=np.int64(shape))
    lives_on(server)
    assert infer(server, "filled", shape=np.int64([2, 3]))["y"].shape == (2, 3)
