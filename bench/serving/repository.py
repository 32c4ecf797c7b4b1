# SPDX-License-Identifier: Apache-2.0
"""The model repositories of scripts/bench serving: the same two models and the same settings for each server."""
import shutil
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MLP_SIZES = (256, 512, 512, 10)
MAX_BATCH = 32


@dataclass(frozen=True)
class Model:
    name: str
    input: str
    output: str
    dims: tuple
    classes: int

    def sample(self, rows):
        return np.random.default_rng(1).standard_normal((rows, *self.dims), np.float32)


MODELS = [Model("mobilenet_v2", "input", "", (3, 224, 224), 1000), Model("mlp", "x", "y", (MLP_SIZES[0],), MLP_SIZES[-1])]


def write_mlp(path):
    rng, nodes, weights, x = np.random.default_rng(2), [], [], "x"
    for i, (n, m) in enumerate(zip(MLP_SIZES, MLP_SIZES[1:])):
        last = i == len(MLP_SIZES) - 2
        weights += [numpy_helper.from_array((rng.standard_normal((n, m)) / np.sqrt(n)).astype(np.float32), f"w{i}"),
                    numpy_helper.from_array(rng.standard_normal(m).astype(np.float32), f"b{i}")]
        nodes.append(helper.make_node("Gemm", [x, f"w{i}", f"b{i}"], ["y" if last else f"h{i}"]))
        if not last:
            nodes.append(helper.make_node("Relu", [f"h{i}"], [f"r{i}"]))
        x = f"r{i}"
    graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", MLP_SIZES[0]])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", MLP_SIZES[-1]])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def config(model, backend, output, instances, threads):
    dims = ", ".join(map(str, model.dims))
    return f"""name: "{model.name}"
backend: "{backend}"
max_batch_size: {MAX_BATCH}
input [ {{ name: "{model.input}" data_type: TYPE_FP32 dims: [ {dims} ] }} ]
output [ {{ name: "{output}" data_type: TYPE_FP32 dims: [ {model.classes} ] }} ]
instance_group [ {{ count: {instances} kind: KIND_CPU }} ]
dynamic_batching {{ }}
parameters {{ key: "threads" value {{ string_value: "{threads}" }} }}
"""


def make(folder, backend, models, instances, threads, reference_models, python_model):
    """`reference_models`: where models/make_models.py wrote; `python_model`: model.py of the Python backend."""
    for model in models:
        version = folder / model.name / "1"
        version.mkdir(parents=True)
        if model.name == "mlp":
            write_mlp(version / "model.onnx")
        else:
            shutil.copy(reference_models / f"{model.name}.onnx", version / "model.onnx")
        output = onnx.load(version / "model.onnx", load_external_data=False).graph.output[0].name
        (folder / model.name / "config.pbtxt").write_text(config(model, backend, output, instances, threads))
        if backend == "python":
            shutil.copy(python_model, version / "model.py")
