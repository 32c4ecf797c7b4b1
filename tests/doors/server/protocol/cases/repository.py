# SPDX-License-Identifier: Apache-2.0
"""The model repository: index, loading and unloading, configs and files that come with the request."""
import base64
import json

from tritonclient.grpc import service_pb2 as pb

from ...make_repository import mlp_answer
from .steps import Grpc, Http, case, json_infer, json_input
from .tensors import JSON_AB, SUM, X

REPOSITORY = "/v2/repository"


def load(model, parameters=None, **fields):
    return Http(f"{REPOSITORY}/models/{model}/load", {"parameters": parameters} if parameters else b"", method="POST", **fields)


def unload(model, parameters=None, **fields):
    return Http(f"{REPOSITORY}/models/{model}/unload", {"parameters": parameters} if parameters else b"", method="POST", **fields)


def index(ready=False, **fields):
    return Http(f"{REPOSITORY}/index", {"ready": True} if ready else b"", method="POST", **fields)


def grpc_load(model, code="OK", own=(), **parameters):
    request = pb.RepositoryModelLoadRequest(model_name=model)
    for name, value in parameters.items():
        setattr(request.parameters[name], "bytes_param" if isinstance(value, bytes) else "string_param", value)
    return Grpc("RepositoryModelLoad", request, code=code, own=own)


SMALL = json.dumps({"name": "warm", "backend": "metal_mps", "max_batch_size": 2,
                    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [16]}],
                    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [4]}],
                    "instance_group": [{"kind": "KIND_CPU", "count": 1}]})
infer_mlp, infer_warm = (json_infer(model, [json_input("x", "FP32", X)], expect={"y": mlp_answer(X)}) for model in ("mlp", "warm"))


def mlp_file(seed):
    """The bytes of the MLP with other weights; made when it is sent."""
    import tempfile
    from pathlib import Path

    from ...make_repository import Repository, mlp
    with tempfile.TemporaryDirectory() as folder:
        mlp(Repository(folder), "m", seed)
        return Path(folder, "m", "1", "model.onnx").read_bytes()


def file_cases():
    content = mlp_file(4)
    config = json.dumps({"backend": "metal_mps", "max_batch_size": 8, "instance_group": [{"kind": "KIND_CPU"}]})
    files = {"config": config, "file:1/model.onnx": base64.b64encode(content).decode()}
    x = [json_input("x", "FP32", X)]
    yield case("http_load_files", load("sent", files), json_infer("sent", x, expect={"y": mlp_answer(X, 4)}), Http("/v2/models/sent", has={"versions": ["1"]}),
               unload("sent"), load("sent", status=500))
    yield case("http_load_files_of_version_5", load("sent", {"config": config, "file:5/model.onnx": files["file:1/model.onnx"]}),
               json_infer("sent", x, version="5", expect={"y": mlp_answer(X, 4)}), unload("sent"))
    yield case("http_load_files_without_config", load("sent", {"file:1/model.onnx": files["file:1/model.onnx"]}, status=500))
    yield case("http_load_files_not_base64", load("sent", {**files, "file:1/model.onnx": "%%%"}, status=400, own=("error",)))
    yield case("http_load_files_outside", load("sent", {**files, "file:../../escape": files["file:1/model.onnx"]}, status=500, same=False))
    request = pb.RepositoryModelLoadRequest(model_name="sent")
    request.parameters["config"].string_param = config
    request.parameters["file:1/model.onnx"].bytes_param = content
    yield case("grpc_load_files", Grpc("RepositoryModelLoad", request), json_infer("sent", x, expect={"y": mlp_answer(X, 4)}), unload("sent"))


CASES = [
    case("http_index", index()),
    case("http_index_ready", index(ready=True)),
    case("http_index_wrong_type", Http(f"{REPOSITORY}/index", {"ready": 3}, status=500)),
    case("grpc_index", Grpc("RepositoryIndex", pb.RepositoryIndexRequest())),
    case("grpc_index_ready", Grpc("RepositoryIndex", pb.RepositoryIndexRequest(ready=True))),
    case("http_load_again", load("mlp"), infer_mlp),
    case("http_unload_load", unload("add_sub"), Http("/v2/models/add_sub/ready", status=400), json_infer("add_sub", JSON_AB, status=404),
         index(), load("add_sub"), Http("/v2/models/add_sub/ready"), json_infer("add_sub", JSON_AB, expect=SUM)),
    case("http_unload_twice", unload("versions"), unload("versions"), load("versions")),
    case("http_unload_unknown", unload("nobody")),
    case("http_load_unknown", load("nobody", status=500)),
    case("http_load_broken", load("broken", status=400), Http("/v2/models/broken/ready", status=400)),
    case("http_load_no_version", load("no_version", status=400)),
    case("http_load_wrong_type", load("wrong_type", status=400)),
    case("http_load_config", load("warm", {"config": SMALL}), Http("/v2/models/warm/config", has={"max_batch_size": 2}), infer_warm,
         json_infer("warm", [json_input("x", "FP32", [[0] * 16] * 3)], status=400), unload("warm"), load("warm"),
         Http("/v2/models/warm/config", has={"max_batch_size": 32})),
    # The files have not changed: the config that came with a request stays.
    case("http_load_after_config", load("warm", {"config": SMALL}), load("warm"), Http("/v2/models/warm/config", has={"max_batch_size": 2}),
         unload("warm"), load("warm"), Http("/v2/models/warm/config", has={"max_batch_size": 32})),
    case("http_load_config_not_json", load("mlp", {"config": "{"}, status=500), infer_mlp),
    case("http_load_config_wrong", load("mlp", {"config": json.dumps({"backend": "metal_mps", "nonsense": 1})}, status=500), infer_mlp),
    case("http_load_parameter_unknown", load("mlp", {"wish": "x"}, status=500), infer_mlp),
    case("http_load_parameter_wrong_type", load("mlp", {"config": 3}, status=500), infer_mlp),
    case("http_unload_part_of_ensemble", unload("scale"), Http("/v2/models/pipeline/ready", status=400), load("scale"), load("pipeline"),
         Http("/v2/models/pipeline/ready")),
    case("http_unload_with_dependents", unload("pipeline", {"unload_dependents": True}), index(), load("pipeline"), infer_mlp,
         Http("/v2/models/pipeline/ready")),
    case("grpc_load_unload", Grpc("RepositoryModelUnload", pb.RepositoryModelUnloadRequest(model_name="cached")),
         Grpc("ModelReady", pb.ModelReadyRequest(name="cached"), has={}), grpc_load("cached"),
         Grpc("ModelReady", pb.ModelReadyRequest(name="cached"), has={"ready": True})),
    case("grpc_load_unknown", grpc_load("nobody", "INTERNAL")),
    case("grpc_load_config", grpc_load("warm", config=SMALL), Grpc("ModelConfig", pb.ModelConfigRequest(name="warm")), unload("warm"), grpc_load("warm")),
    *file_cases(),
    # Without explicit control nothing can be loaded.
    case("http_load_not_allowed", load("mlp", status=503), on="whole"),
    case("http_unload_not_allowed", unload("mlp", status=503), on="whole"),
    case("grpc_load_not_allowed", grpc_load("mlp", "UNAVAILABLE"), on="whole"),
    case("http_index_fixed", index(), on="whole"),
]
