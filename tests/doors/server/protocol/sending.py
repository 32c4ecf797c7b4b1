# SPDX-License-Identifier: Apache-2.0
"""Sends the steps of a case to a server and turns what comes back into plain values that can be compared."""
import gzip
import http.client
import json
import re
import threading
import time
import zlib

import grpc
import numpy as np
from google.protobuf.json_format import MessageToDict
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from .cases.steps import Grpc, Http, Local, Together, from_bytes, from_json

COMPRESSION = {None: None, "gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}


def is_changing(index):
    """Unloading goes on behind the answer to it; what is compared is where it leads."""
    models = index.get("json")
    return isinstance(models, list) and any(m.get("state") in ("LOADING", "UNLOADING") for m in models if isinstance(m, dict))


def is_in_use(answer):
    """Tritonserver sends an answer first and frees its shared memory a moment later, whatever the backend does."""
    return "it is currently in use" in str(answer)


class Client:
    """One server, with a connection of its own for gRPC; HTTP takes a new one for each request."""

    def __init__(self, server):
        self.server = server
        self.channel = grpc.insecure_channel(server.grpc, options=[("grpc.max_receive_message_length", -1),
                                                                   ("grpc.max_send_message_length", -1)])
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(self.channel)

    def close(self):
        self.channel.close()

    def answer(self, step):
        if isinstance(step, Http):
            answer = self.http(step)
            end = time.monotonic() + 10
            while time.monotonic() < end and (step.path.endswith("/repository/index") and is_changing(answer) or
                                              self.server.kind == "triton" and step.path.endswith("/unregister") and is_in_use(answer)):
                time.sleep(0.02)
                answer = self.http(step)
            return answer
        if isinstance(step, Grpc):
            return self.stream(step) if step.rpc == "ModelStreamInfer" else self.grpc(step)
        if isinstance(step, Together):
            return self.together(step)
        return {"local": step.run(self.server)}

    def together(self, step):
        answers = [None] * len(step.steps)

        def send(i):
            answers[i] = self.answer(step.steps[i])
        threads = [threading.Thread(target=send, args=(i,)) for i in range(len(answers))]
        for thread in threads:
            thread.start()
            time.sleep(step.delay)
        for thread in threads:
            thread.join()
        return {"together": answers}

    def http(self, step):
        port = self.server.metrics_port if step.port == "metrics" else self.server.http_port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = step.body if step.body is None or isinstance(step.body, bytes) else json.dumps(step.body).encode()
        try:
            connection.request(step.method or ("GET" if body is None else "POST"), step.path, body=body, headers=step.headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        return http_answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, data)

    def grpc(self, step):
        method = getattr(self.stub, step.rpc)
        try:
            message = method(step.request, timeout=step.timeout, compression=COMPRESSION[step.compression])
        except grpc.RpcError as error:
            return {"code": error.code().name, "error": error.details()}
        return grpc_answer(message)

    def stream(self, step):
        try:
            messages = list(self.stub.ModelStreamInfer(iter(step.request), timeout=step.timeout))
        except grpc.RpcError as error:
            return {"code": error.code().name, "error": error.details()}
        return {"code": "OK", "messages": [{"error": m.error_message, **grpc_answer(m.infer_response)} for m in messages]}


def decoded(data, encoding):
    return {"gzip": gzip.decompress, "deflate": zlib.decompress}.get(encoding, bytes)(data)


def http_answer(status, headers, data):
    answer = {"status": status, "type": headers.get("content-type")}
    if "content-encoding" in headers:
        answer["encoding"] = headers["content-encoding"]
        data = decoded(data, headers["content-encoding"])
    length = headers.get("inference-header-content-length")
    head, binary = (data, b"") if length is None else (data[:int(length)], data[int(length):])
    answer["binary"] = length is not None
    if status != 200:
        del answer["type"]  # Triton calls some of its errors text
    try:
        content = json.loads(head) if head else None
    except ValueError:
        return {**answer, "bytes": head}
    answer["json"] = content
    if isinstance(content, dict) and isinstance(content.get("outputs"), list):
        answer["outputs"] = {}
        for output in content["outputs"]:
            size = output.get("parameters", {}).get("binary_data_size")
            if "data" in output:
                array = from_json(output.pop("data"), output["datatype"], output["shape"])
            elif size is not None:
                array, binary = from_bytes(binary[:size], output["datatype"], output["shape"]), binary[size:]
            else:
                continue  # in shared memory
            answer["outputs"][output["name"]] = array
        answer["rest"] = binary
        content["outputs"].sort(key=lambda o: o["name"])  # in which order they come is a server's own business
    return answer


def grpc_answer(message):
    answer = {"code": "OK"}
    if isinstance(message, pb.ModelInferResponse):
        raw = list(message.raw_output_contents)
        answer["outputs"] = {}
        for output, data in zip(message.outputs, raw):
            if data or 0 in output.shape:  # else it is in shared memory
                answer["outputs"][output.name] = from_bytes(data, output.datatype, list(output.shape))
        message.ClearField("raw_output_contents")
    answer["message"] = MessageToDict(message, preserving_proto_field_name=True)
    if answer["message"].get("outputs") and isinstance(message, pb.ModelInferResponse):
        answer["message"]["outputs"].sort(key=lambda o: o["name"])
    return answer


def differences(ours, theirs, where=""):
    """The places in which two answers differ, in words; arrays are compared bit by bit."""
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        same = ours.dtype == theirs.dtype and ours.shape == theirs.shape and ours.tobytes() == theirs.tobytes() \
            if ours.dtype != object else ours.shape == theirs.shape and ours.tolist() == theirs.tolist()
        return [] if same else [f"{where}: {ours!r}, not {theirs!r}"]
    if isinstance(ours, dict) and isinstance(theirs, dict):
        out = [f"{where}.{key}: missing (there: {theirs[key]!r})" for key in theirs if key not in ours]
        out += [f"{where}.{key}: {ours[key]!r}, which is not there" for key in ours if key not in theirs]
        return out + [d for key in ours if key in theirs for d in differences(ours[key], theirs[key], f"{where}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [d for i, pair in enumerate(zip(ours, theirs)) for d in differences(*pair, f"{where}[{i}]")]
    return [] if ours == theirs and isinstance(ours, bool) == isinstance(theirs, bool) else [f"{where}: {ours!r}, not {theirs!r}"]


def without(answer, own, numbers):
    """The answer without the fields that are a server's own; numbers by their type if they may differ."""
    if isinstance(answer, dict):
        return {k: without(v, own, numbers) for k, v in answer.items() if k not in own}
    if isinstance(answer, list):
        return [without(v, own, numbers) for v in answer]
    if not numbers and isinstance(answer, (int, float)) and not isinstance(answer, bool):
        return "a number"
    if not numbers and isinstance(answer, str) and re.fullmatch(r"\d+", answer):
        return "a number"
    return answer


def comparable(step, answer):
    if isinstance(step, Together):
        return [comparable(s, a) for s, a in zip(step.steps, answer["together"])] if step.same else None
    if not step.same:
        return None
    return answer if isinstance(step, Local) else without(answer, step.own, step.numbers)


def subset(expected, got, where):
    if isinstance(expected, dict) and isinstance(got, dict):
        return [d for k, v in expected.items() for d in (subset(v, got[k], f"{where}.{k}") if k in got else [f"{where}.{k} is missing"])]
    return [] if expected == got else [f"{where}: {got!r}, expected {expected!r}"]


def check_outputs(expected, got, where="outputs"):
    problems = []
    for name, array in expected.items():
        if got is None or name not in got:
            problems.append(f"{where}.{name} is missing; there are {list(got or [])}")
            continue
        value = got[name]
        if array is None:
            continue
        array = np.asarray(array, dtype=value.dtype)
        if value.shape != array.shape:
            problems.append(f"{where}.{name} has shape {value.shape}, expected {array.shape}")
        elif value.dtype == object or value.dtype.kind in "biu":
            if value.tolist() != array.tolist():
                problems.append(f"{where}.{name}: {value!r}, expected {array!r}")
        elif not np.allclose(value.astype(np.float64), array.astype(np.float64), rtol=1e-5, atol=1e-6, equal_nan=True):
            problems.append(f"{where}.{name}: {value!r}, expected {array!r}")
    return problems


def problems(step, answer):
    """How the answer differs from what the step expects, in words."""
    if isinstance(step, Together):
        return [p for s, a in zip(step.steps, answer["together"]) for p in problems(s, a)]
    if isinstance(step, Local):
        return []
    key, expected = ("status", step.status) if isinstance(step, Http) else ("code", step.code)
    out = [] if answer[key] == expected else [f"{key} {answer[key]}, expected {expected}: {text_of(answer)}"]
    if step.error is not None and not re.search(step.error, text_of(answer)):
        out.append(f"the message is {text_of(answer)!r}, expected /{step.error}/")
    if isinstance(step, Grpc) and step.rpc == "ModelStreamInfer" and step.outputs is not None:
        messages = answer.get("messages", [])
        if len(messages) != len(step.outputs):
            return [*out, f"{len(messages)} answers in the stream, expected {len(step.outputs)}: {text_of(answer)}"]
        return out + [p for e, m in zip(step.outputs, messages) if e is not None for p in check_outputs(e, m.get("outputs"))]
    if step.outputs is not None:
        out += check_outputs(step.outputs, answer.get("outputs"))
    if step.has is not None:
        out += subset(step.has, answer.get("json", answer.get("message")), "answer")
    return out


def text_of(answer):
    if answer.get("error"):
        return answer["error"]
    content = answer.get("json", answer.get("bytes", answer.get("text", answer.get("messages", answer.get("message")))))
    return content["error"] if isinstance(content, dict) and "error" in content else str(content)
