# SPDX-License-Identifier: Apache-2.0
"""What a case is made of: requests over HTTP and gRPC with the outcome that is expected of every server.

A case is a list of steps. Each step is sent to a server and gives an answer, a plain value that can be compared: the
status or code, the fields of the message, the tensors. The expected outcome is checked for each server on its own;
then the answers of both must be the same, but for the fields that the step says are a server's own.
"""
import json
from dataclasses import dataclass, field
from typing import Any, Callable

import ml_dtypes
import numpy as np
from tritonclient.grpc import service_pb2 as pb
from tritonclient.utils import deserialize_bytes_tensor, serialize_byte_tensor

NUMPY = {"BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64, "INT8": np.int8,
         "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "FP16": np.float16, "FP32": np.float32, "FP64": np.float64,
         "BF16": ml_dtypes.bfloat16, "BYTES": np.object_}
TYPED = {"BOOL": "bool_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents", "UINT64": "uint64_contents",
         "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents", "INT64": "int64_contents", "FP32": "fp32_contents",
         "FP64": "fp64_contents", "BYTES": "bytes_contents"}


@dataclass(frozen=True)
class Http:
    path: str
    body: Any = None  # None, bytes, or what is sent as JSON
    method: str = ""  # GET, or POST if there is a body
    status: int = 200
    headers: dict = field(default_factory=dict)
    outputs: dict = None  # name -> array
    error: str = None  # a regular expression of the message
    has: dict = None  # fields of the answer
    own: tuple = ()  # fields that each server may fill as it likes
    numbers: bool = True  # False: numbers in the answer are compared by their type only
    same: bool = True  # False: the answers of the servers are not compared, only the expectation holds
    port: str = "http"


@dataclass(frozen=True)
class Grpc:
    rpc: str
    request: Any  # a message, or a list of them for the stream
    code: str = "OK"
    outputs: Any = None
    error: str = None
    has: dict = None
    own: tuple = ()
    numbers: bool = True
    same: bool = True
    compression: str = None
    timeout: float = 30


@dataclass(frozen=True)
class Local:
    """Something that happens on this machine, such as a look into shared memory: run(server) -> answer."""
    run: Callable
    same: bool = True


@dataclass(frozen=True)
class Together:
    """Steps that are under way at the same time, each beginning `delay` seconds after the one before."""
    steps: tuple
    delay: float = 0.0
    same: bool = True


@dataclass(frozen=True)
class Case:
    name: str
    steps: tuple
    on: str = "open"  # which pair of servers: see test_protocol.SERVERS
    only: str = ""  # the one kind of server that it is for


def case(name, *steps, on="open", only=""):
    return Case(name, steps, on, only)


def raw_bytes(array, datatype):
    if datatype == "BYTES":
        packed = serialize_byte_tensor(np.asarray(array, dtype=np.object_))
        return packed.item() if packed.size else b""
    return np.ascontiguousarray(array, dtype=NUMPY[datatype]).tobytes()


def from_bytes(data, datatype, shape):
    if datatype == "BYTES":
        return deserialize_bytes_tensor(data).reshape(shape)
    return np.frombuffer(data, dtype=NUMPY[datatype]).reshape(shape)


def from_json(data, datatype, shape):
    flat = list(flatten(data))
    if datatype == "BYTES":
        return np.array([s.encode() for s in flat], dtype=np.object_).reshape(shape)
    return np.array(flat, dtype=NUMPY[datatype]).reshape(shape)


def flatten(data):
    for value in data:
        if isinstance(value, list):
            yield from flatten(value)
        else:
            yield value


# --- HTTP ---------------------------------------------------------------------------------------------------------
def json_input(name, datatype, array, **parameters):
    """An input whose elements are in the JSON."""
    array = np.asarray(array, dtype=NUMPY[datatype])
    data = [e.decode() for e in array.ravel()] if datatype == "BYTES" else array.ravel().tolist()
    return {"name": name, "shape": list(array.shape), "datatype": datatype, "data": data, **({"parameters": parameters} if parameters else {})}


def json_infer(model, inputs, version="", outputs=None, expect=None, status=200, headers=None, **fields):
    """`fields` of Http are taken out; the others go into the request."""
    http = {k: fields.pop(k) for k in ("error", "has", "own", "same", "numbers") if k in fields}
    body = {**fields, "inputs": list(inputs), **({"outputs": outputs} if outputs is not None else {})}
    return Http(infer_path(model, version), body, status=status, outputs=expect, headers=headers or {}, **http)


def infer_path(model, version=""):
    return f"/v2/models/{model}/versions/{version}/infer" if version else f"/v2/models/{model}/infer"


def binary_infer(model, inputs, outputs=None, expect=None, headers=None, encode=None, status=200, version="", **http):
    """Inputs [(name, datatype, array)] after the JSON, as tritonclient sends them; outputs as bytes too."""
    tensors, parts = [], []
    for name, datatype, array in inputs:
        array = np.asarray(array, dtype=NUMPY[datatype])
        parts.append(raw_bytes(array, datatype))
        tensors.append({"name": name, "shape": list(array.shape), "datatype": datatype, "parameters": {"binary_data_size": len(parts[-1])}})
    body = {"inputs": tensors, **({"outputs": outputs} if outputs is not None else {"parameters": {"binary_data_output": True}})}
    head = json.dumps(body).encode()
    data = head + b"".join(parts)
    headers = {"Inference-Header-Content-Length": str(len(head)), **(headers or {})}
    return Http(infer_path(model, version), encode(data) if encode else data, status=status, headers=headers, outputs=expect, **http)


# --- gRPC ---------------------------------------------------------------------------------------------------------
def set_parameters(parameters, values):
    for name, value in values.items():
        kind = {bool: "bool_param", int: "int64_param", str: "string_param", float: "double_param"}[type(value)]
        setattr(parameters[name], kind, value)


def grpc_request(model, inputs, outputs=(), raw=True, version="", parameters=None, request_id=""):
    """Inputs [(name, datatype, array)]; outputs names or (name, parameters)."""
    request = pb.ModelInferRequest(model_name=model, model_version=version, id=request_id)
    for name, datatype, array in inputs:
        array = np.asarray(array, dtype=NUMPY[datatype])
        tensor = request.inputs.add(name=name, datatype=datatype, shape=array.shape)
        if raw:
            request.raw_input_contents.append(raw_bytes(array, datatype))
        else:
            getattr(tensor.contents, TYPED[datatype]).extend(array.ravel().tolist())
    for output in outputs:
        name, values = output if isinstance(output, tuple) else (output, {})
        set_parameters(request.outputs.add(name=name).parameters, values)
    set_parameters(request.parameters, parameters or {})
    return request


def grpc_infer(model, inputs, outputs=(), expect=None, raw=True, version="", parameters=None, request_id="", **fields):
    return Grpc("ModelInfer", grpc_request(model, inputs, outputs, raw, version, parameters, request_id), outputs=expect, **fields)
