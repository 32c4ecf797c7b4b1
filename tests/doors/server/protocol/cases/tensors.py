# SPDX-License-Identifier: Apache-2.0
"""Inference: every data type in every form, shapes, compression, classification, ensembles."""
import gzip
import json
import zlib

import numpy as np

from ...make_repository import DTYPES, mlp_answer
from .steps import NUMPY, TYPED, Http, binary_infer, case, grpc_infer, infer_path, json_infer, json_input, raw_bytes

VALUES = {
    "BOOL": [[True, False, True]], "UINT8": [[0, 7, 255]], "UINT16": [[0, 7, 65535]], "UINT32": [[0, 7, 2**32 - 1]],
    "UINT64": [[0, 7, 2**64 - 1]], "INT8": [[-128, 0, 127]], "INT16": [[-32768, 0, 32767]], "INT32": [[-2**31, 0, 2**31 - 1]],
    "INT64": [[-2**63, 0, 2**63 - 1]], "FP16": [[0.5, -65504.0, 6e-8]], "FP32": [[0.1, -3.4e38, 1e-45]], "FP64": [[0.1, -1.7e308, 5e-324]],
    "BF16": [[0.5, -3.3e38, 1e-40]], "BYTES": [[b"", b"one", "h\u00e4\u00df \u65e5\u672c".encode()]],
}
X = np.arange(32, dtype=np.float32).reshape(2, 16) / 32
A, B = np.arange(16, dtype=np.int32).reshape(1, 16), np.full((1, 16), 3, np.int32)
SUM = {"OUTPUT0": A + B, "OUTPUT1": A - B}
AB = [("INPUT0", "INT32", A), ("INPUT1", "INT32", B)]
JSON_AB = [json_input(*t) for t in AB]


def identity(datatype):
    return f"identity_{datatype.lower()}"


def dtype_cases():
    for datatype in DTYPES:
        array = np.array(VALUES[datatype], dtype=NUMPY[datatype])
        inputs, expect, model = [("INPUT0", datatype, array)], {"OUTPUT0": array}, identity(datatype)
        name = datatype.lower()
        if datatype not in ("FP16", "BF16"):  # these have no form in JSON
            yield case(f"http_json_{name}", json_infer(model, [json_input(*inputs[0])], expect=expect))
        yield case(f"http_binary_{name}", binary_infer(model, inputs, expect=expect))
        yield case(f"grpc_raw_{name}", grpc_infer(model, inputs, expect=expect))
        if datatype in TYPED:
            yield case(f"grpc_typed_{name}", grpc_infer(model, inputs, raw=False, expect=expect))
        empty = np.zeros((1, 0), array.dtype)
        yield case(f"http_binary_empty_{name}", binary_infer(model, [("INPUT0", datatype, empty)], expect={"OUTPUT0": empty}))
        yield case(f"grpc_raw_empty_{name}", grpc_infer(model, [("INPUT0", datatype, empty)], expect={"OUTPUT0": empty}))
    for datatype in ("FP16", "BF16"):
        yield case(f"http_json_{datatype.lower()}", json_infer(identity(datatype), [
            {"name": "INPUT0", "shape": [1, 1], "datatype": datatype, "data": [1]}], status=400))
        yield case(f"http_json_output_{datatype.lower()}", binary_infer(identity(datatype), [("INPUT0", datatype, [[1.0]])],
                                                                         outputs=[{"name": "OUTPUT0"}], status=400))


def json_cases():
    yield case("http_json", json_infer("add_sub", JSON_AB, expect=SUM))
    yield case("http_json_nested", json_infer("add_sub", [{**t, "data": [t["data"]]} for t in JSON_AB], expect=SUM))
    yield case("http_json_id", json_infer("add_sub", JSON_AB, id="a \"b\" \u00e4", has={"id": "a \"b\" \u00e4"}))
    yield case("http_json_one_output", json_infer("add_sub", JSON_AB, outputs=[{"name": "OUTPUT1"}], expect={"OUTPUT1": A - B}))
    yield case("http_json_outputs_turned", json_infer("add_sub", JSON_AB, outputs=[{"name": "OUTPUT1"}, {"name": "OUTPUT0"}], expect=SUM))
    yield case("http_json_inputs_turned", json_infer("add_sub", JSON_AB[::-1], expect=SUM))
    yield case("http_json_in_binary_out", json_infer("add_sub", JSON_AB, expect=SUM, parameters={"binary_data_output": True}))
    yield case("http_json_one_binary_output", json_infer("add_sub", JSON_AB, expect=SUM, outputs=[
        {"name": "OUTPUT0", "parameters": {"binary_data": True}}, {"name": "OUTPUT1"}]))
    yield case("http_json_parameters", json_infer("add_sub", JSON_AB, expect=SUM, parameters={"mine": "a", "number": 3, "flag": True}))
    yield case("http_json_big_batch", json_infer("mlp", [json_input("x", "FP32", np.tile(X, (16, 1)))], expect={"y": mlp_answer(np.tile(X, (16, 1)))}))
    yield case("http_version", json_infer("versions", [json_input("x", "FP32", [[1, 2]])], version="2", expect={"y": [[3, 4]]}))
    yield case("http_latest_version", json_infer("versions", [json_input("x", "FP32", [[1, 2]])], expect={"y": [[11, 12]]},
                                                 has={"model_version": "10"}))
    yield case("http_floats_print", json_infer("identity_fp32", [json_input("INPUT0", "FP32", [[1 / 3, 1e-7, 12345678, 1e20, -0.0]])],
                                               expect={"OUTPUT0": np.float32([[1 / 3, 1e-7, 12345678, 1e20, -0.0]])}))
    yield case("http_json_int_for_float", Http(infer_path("identity_fp32"), b'{"inputs":[{"name":"INPUT0","shape":[1,2],"datatype":"FP32",'
               b'"data":[1,2]}]}', outputs={"OUTPUT0": [[1, 2]]}))
    yield case("http_json_bytes_binary_out", json_infer("identity_bytes", [json_input("INPUT0", "BYTES", [[b"a", b""]])],
                                                        parameters={"binary_data_output": True}, expect={"OUTPUT0": [[b"a", b""]]}))
    yield case("http_bytes_not_utf8", binary_infer("identity_bytes", [("INPUT0", "BYTES", np.array([[b"\xff\x00\xfe"]], dtype=object))],
                                                   expect={"OUTPUT0": np.array([[b"\xff\x00\xfe"]], dtype=object)}))


def binary_cases():
    yield case("http_binary", binary_infer("add_sub", AB, expect=SUM))
    yield case("http_binary_to_json", binary_infer("add_sub", AB, outputs=[{"name": "OUTPUT0"}, {"name": "OUTPUT1"}], expect=SUM))
    raw = {"Inference-Header-Content-Length": "0"}
    yield case("http_raw", Http(infer_path("identity_fp32"), np.float32([1, 2, 3]).tobytes(), headers=raw, outputs={"OUTPUT0": [[1, 2, 3]]}))
    yield case("http_raw_one_input", Http(infer_path("scale"), np.arange(16, dtype=np.float32).tobytes(), headers=raw, outputs={"y": [np.arange(16) * 2]}))
    yield case("http_raw_bytes", Http(infer_path("identity_bytes"), raw_bytes(np.array([b"x"], dtype=object), "BYTES"), headers=raw, status=400))
    for name, encode in (("gzip", gzip.compress), ("deflate", zlib.compress)):
        yield case(f"http_{name}_request", binary_infer("add_sub", AB, encode=encode, headers={"Content-Encoding": name}, expect=SUM))
        yield case(f"http_{name}_json_request", Http(infer_path("add_sub"), encode(json.dumps({"inputs": JSON_AB}).encode()),
                                                     headers={"Content-Encoding": name}, outputs=SUM))
        yield case(f"http_{name}_answer", binary_infer("add_sub", AB, headers={"Accept-Encoding": name}, expect=SUM))
        yield case(f"http_{name}_broken", binary_infer("add_sub", AB, encode=lambda data: b"\x00" + data, status=400, own=("error",),
                                                       headers={"Content-Encoding": name}))
        yield case(f"grpc_{name}", grpc_infer("add_sub", AB, expect=SUM, compression=name))
    yield case("http_both_accepted", json_infer("add_sub", JSON_AB, expect=SUM, headers={"Accept-Encoding": "deflate, gzip"}))


def shape_cases():
    big = np.random.default_rng(5).standard_normal((1, 1 << 20)).astype(np.float32)
    yield case("http_binary_large", binary_infer("identity_fp32", [("INPUT0", "FP32", big)], expect={"OUTPUT0": big}))
    yield case("grpc_raw_large", grpc_infer("identity_fp32", [("INPUT0", "FP32", big)], expect={"OUTPUT0": big}))
    for n, m in ((1, 1), (3, 5), (1, 0), (0, 3)):
        array = np.arange(n * m, dtype=np.float32).reshape(n, m)
        yield case(f"http_shape_{n}x{m}", binary_infer("identity_2d", [("INPUT0", "FP32", array)], expect={"OUTPUT0": array}))
        yield case(f"grpc_shape_{n}x{m}", grpc_infer("identity_2d", [("INPUT0", "FP32", array)], expect={"OUTPUT0": array}))
    yield case("http_scalar", json_infer("scalar", [json_input("x", "FP32", [[1], [2], [3]])], expect={"y": [[2], [4], [6]]}))
    yield case("grpc_scalar", grpc_infer("scalar", [("x", "FP32", [[1], [2]])], expect={"y": [[2], [4]]}))
    a, b = np.array([[b"ab", b"c"]], dtype=object), np.array([[b"ab", b"\xc3\xa4"]], dtype=object)
    expect = {"joined": np.array([[b"ab-ab", b"c-\xc3\xa4"]], dtype=object), "same": [[True, False]]}
    yield case("http_strings", json_infer("strings", [json_input("a", "BYTES", a), json_input("b", "BYTES", b)], expect=expect))
    yield case("grpc_strings", grpc_infer("strings", [("a", "BYTES", a), ("b", "BYTES", b)], expect=expect))
    yield case("http_ragged", json_infer("ragged", [json_input("INPUT", "FP32", [[1, 2, 3]])], expect={"SUM": [[6]]}))
    yield case("grpc_ragged", grpc_infer("ragged", [("INPUT", "FP32", [[1, 2, 3, 4]])], expect={"SUM": [[10]]}))


def class_cases():
    def classes(k):
        return [{"name": "y", "parameters": {"classification": k}}]
    x = [json_input("x", "FP32", X)]
    for k in (1, 2, 4, 9):
        yield case(f"http_classes_{k}", json_infer("mlp", x, outputs=classes(k), expect={"y": None}))
    yield case("http_classes_binary", binary_infer("mlp", [("x", "FP32", X)], expect={"y": None}, outputs=[
        {"name": "y", "parameters": {"classification": 2, "binary_data": True}}]))
    yield case("grpc_classes", grpc_infer("mlp", [("x", "FP32", X)], [("y", {"classification": 3})], expect={"y": None}))
    yield case("http_classes_of_integers", json_infer("add_sub", JSON_AB, outputs=[{"name": "OUTPUT0", "parameters": {"classification": 2}}],
                                                      expect={"OUTPUT0": np.array([[b"18:15:label_15", b"17:14:label_14"]], dtype=object)}))
    yield case("http_classes_without_labels", json_infer("add_sub", JSON_AB, outputs=[{"name": "OUTPUT1", "parameters": {"classification": 1}}],
                                                         expect={"OUTPUT1": np.array([[b"12:15"]], dtype=object)}))


def grpc_cases():
    yield case("grpc_raw", grpc_infer("add_sub", AB, expect=SUM))
    yield case("grpc_typed", grpc_infer("add_sub", AB, raw=False, expect=SUM))
    yield case("grpc_one_output", grpc_infer("add_sub", AB, ["OUTPUT1"], expect={"OUTPUT1": A - B}))
    yield case("grpc_outputs_turned", grpc_infer("add_sub", AB, ["OUTPUT1", "OUTPUT0"], expect=SUM))
    yield case("grpc_id", grpc_infer("add_sub", AB, request_id="seven", has={"id": "seven"}))
    yield case("grpc_version", grpc_infer("versions", [("x", "FP32", [[1, 2]])], version="1", expect={"y": [[2, 3]]}))
    yield case("grpc_parameters", grpc_infer("add_sub", AB, expect=SUM, parameters={"mine": "a", "number": 3, "flag": True, "real": 0.5}))


def ensemble_cases():
    expect = {"probabilities": mlp_answer(2 * X), "scaled": 2 * X}
    yield case("http_ensemble", json_infer("pipeline", [json_input("raw", "FP32", X)], expect=expect))
    # Triton takes a tensor between two steps that is asked for alone for a deadlock.
    yield case("http_ensemble_one_output", json_infer("pipeline", [json_input("raw", "FP32", X)], outputs=[{"name": "scaled"}],
                                                      expect={"scaled": 2 * X}), only="anymps")
    yield case("grpc_ensemble", grpc_infer("pipeline", [("raw", "FP32", X)], expect=expect, request_id="e"))
    yield case("grpc_ensemble_batch", grpc_infer("pipeline", [("raw", "FP32", np.tile(X, (4, 1)))], expect={"scaled": 2 * np.tile(X, (4, 1))}))


CASES = [*dtype_cases(), *json_cases(), *binary_cases(), *shape_cases(), *class_cases(), *grpc_cases(), *ensemble_cases()]
