# SPDX-License-Identifier: Apache-2.0
"""Requests that must be refused: what is malformed, what the model does not have, what does not fit, what is too large."""
import json

import numpy as np

from .steps import Grpc, Http, binary_infer, case, grpc_infer, grpc_request, infer_path, json_infer, json_input
from .tensors import A, AB, JSON_AB, B

PATH = infer_path("add_sub")
HUGE = 1 << 40
WORDED = ("error",)  # refused by both, each in its own words
NOT_JSON = 500  # JSON that cannot be read, or is not of the form that is asked for, is an internal error to Triton
LENGTH = "Inference-Header-Content-Length"


def body(**changes):
    """The request for add_sub with changes in its first input."""
    first = {**JSON_AB[0], **changes}
    return {"inputs": [{k: v for k, v in first.items() if v is not None}, JSON_AB[1]]}


def malformed_cases():
    texts = {"empty": b"", "not_json": b"{", "number": b"7", "list": b"[]", "null": b"null", "no_inputs": b"{}", "deep": b"[" * 5000,
             "inputs_not_a_list": b'{"inputs": 3}', "input_not_an_object": b'{"inputs": [3]}', "no_tensors": b'{"inputs": []}',
             "not_utf8": b'{"id": "\xff"}', "trailing": json.dumps({"inputs": JSON_AB}).encode() + b"}"}
    for name, text in texts.items():
        status = 400 if name in ("empty", "input_not_an_object", "no_tensors") else NOT_JSON
        yield case(f"http_body_{name}", Http(PATH, text, method="POST", status=status, own=WORDED if name in ("empty", "deep") else ()))
    for name, value in {"id_number": 3, "id_list": []}.items():
        yield case(f"http_{name}", Http(PATH, {"inputs": JSON_AB, "id": value}, status=NOT_JSON))
    yield case("http_outputs_not_a_list", Http(PATH, {"inputs": JSON_AB, "outputs": 3}, status=NOT_JSON))
    yield case("http_output_without_name", Http(PATH, {"inputs": JSON_AB, "outputs": [{}]}, status=NOT_JSON))
    yield case("http_parameters_not_an_object", Http(PATH, {"inputs": JSON_AB, "parameters": 3}, status=NOT_JSON))
    yield case("http_parameter_list", Http(PATH, {"inputs": JSON_AB, "parameters": {"mine": []}}, status=400))
    for length in ("-1", "99999999", "x", "18446744073709551617"):
        yield case(f"http_header_length_{length}", binary_infer("add_sub", AB, headers={LENGTH: length}, status=400, own=WORDED if length == "x" else ()))
    yield case("http_unknown_encoding", binary_infer("add_sub", AB, headers={"Content-Encoding": "br"}, status=501))


def input_cases():
    changes = {"without_name": {"name": None}, "without_shape": {"shape": None}, "without_datatype": {"datatype": None},
               "unknown_name": {"name": "INPUT7"}, "same_name_twice": {"name": "INPUT1"}, "unknown_datatype": {"datatype": "FP33"},
               "other_datatype": {"datatype": "FP32"}, "name_number": {"name": 3}, "datatype_number": {"datatype": 3},
               "shape_number": {"shape": 16}, "shape_text": {"shape": "16"}, "shape_real": {"shape": [1.5, 16]},
               "shape_negative": {"shape": [1, -16]}, "shape_small": {"shape": [1, 15], "data": [0] * 15}, "rank_1": {"shape": [16]},
               "rank_3": {"shape": [1, 1, 16]}, "too_few": {"data": [0] * 15}, "too_many": {"data": [0] * 17}, "no_elements": {"data": []},
               "texts": {"data": ["a"] * 16}, "reals": {"data": [0.5] * 16}, "nulls": {"data": [None] * 16}, "booleans": {"data": [True] * 16},
               "too_large_integers": {"data": [1 << 40] * 16}, "data_not_a_list": {"data": 3}, "huge_shape": {"shape": [HUGE, HUGE]},
               "huge_batch": {"shape": [HUGE, 16]}}
    not_as_asked = ("texts", "reals", "nulls", "booleans", "data_not_a_list", "name_number", "datatype_number", "shape_number", "shape_text",
                    "shape_real", "without_name", "without_shape", "without_datatype", "shape_negative", "too_few", "too_many", "no_elements",
                    "huge_batch")
    # Triton cuts the integers, and is gone after the batch.
    only = ("too_large_integers", "huge_batch")
    for name, change in changes.items():
        status = NOT_JSON if name in not_as_asked else 400
        yield case(f"http_input_{name}", Http(PATH, body(**change), status=status, own=WORDED if name == "huge_shape" else ()),
                   only="anymps" if name in only else "")
    yield case("http_input_missing", Http(PATH, {"inputs": JSON_AB[:1]}, status=400))
    yield case("http_input_extra", Http(PATH, {"inputs": [*JSON_AB, {**JSON_AB[0], "name": "INPUT2"}]}, status=400))
    yield case("http_batch_too_large", json_infer("add_sub", [json_input("INPUT0", "INT32", np.tile(A, (9, 1))),
                                                              json_input("INPUT1", "INT32", np.tile(B, (9, 1)))], status=400))
    yield case("http_batches_differ", json_infer("add_sub", [json_input("INPUT0", "INT32", np.tile(A, (2, 1))), JSON_AB[1]], status=400))
    yield case("http_batch_empty", json_infer("add_sub", [json_input("INPUT0", "INT32", A[:0]), json_input("INPUT1", "INT32", B[:0])], status=400,
                                              same=False))
    yield case("http_output_unknown", json_infer("add_sub", JSON_AB, outputs=[{"name": "OUTPUT7"}], status=400))
    yield case("http_infer_unknown_model", json_infer("nobody", JSON_AB, status=404))
    yield case("http_infer_unknown_version", json_infer("add_sub", JSON_AB, version="7", status=404))
    yield case("http_infer_odd_version", json_infer("add_sub", JSON_AB, version="x", status=404))
    yield case("http_infer_get", Http(PATH, status=405))


def size_cases():
    for name, size in {"small": 60, "large": 68, "huge": HUGE, "negative": -4, "text": "64"}.items():
        tensors = [{**{k: v for k, v in t.items() if k != "data"}, "parameters": {"binary_data_size": s}} for t, s in zip(JSON_AB, (size, 64))]
        head = json.dumps({"inputs": tensors}).encode()
        yield case(f"http_binary_size_{name}", Http(PATH, head + A.tobytes() + B.tobytes(), headers={LENGTH: str(len(head))},
                                                    status=NOT_JSON if name in ("negative", "text") else 400))
    head = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1, 16], "datatype": "INT32"}, JSON_AB[1]]}).encode()
    yield case("http_no_data_at_all", Http(PATH, head, status=400, method="POST"))
    yield case("http_binary_bytes_cut", cut_strings())
    text = [json_input("INPUT0", "BYTES", np.array([[b"a"]], dtype=object))]
    yield case("http_strings_for_numbers", json_infer("identity_fp32", [{**text[0], "datatype": "FP32"}], status=NOT_JSON))
    yield case("http_strings_for_fp32_model", json_infer("identity_fp32", text, status=400))


def cut_strings():
    head = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1, 1], "datatype": "BYTES", "parameters": {"binary_data_size": 6}}]}).encode()
    return Http(infer_path("identity_bytes"), head + b"\x09\0\0\0ab", status=400, headers={LENGTH: str(len(head))})


def grpc_cases():
    bad = "INVALID_ARGUMENT"
    yield case("grpc_infer_unknown_model", grpc_infer("nobody", AB, code="NOT_FOUND"))
    yield case("grpc_infer_unknown_version", grpc_infer("add_sub", AB, version="7", code="NOT_FOUND"))
    yield case("grpc_infer_odd_version", grpc_infer("add_sub", AB, version="x", code=bad))
    yield case("grpc_no_inputs", grpc_infer("add_sub", [], code=bad))
    yield case("grpc_input_missing", grpc_infer("add_sub", AB[:1], code=bad))
    yield case("grpc_input_extra", grpc_infer("add_sub", [*AB, ("INPUT2", "INT32", A)], code=bad))
    yield case("grpc_input_unknown", grpc_infer("add_sub", [AB[0], ("INPUT7", "INT32", A)], code=bad))
    yield case("grpc_input_twice", grpc_infer("add_sub", [AB[0], AB[0]], code=bad))
    yield case("grpc_other_datatype", grpc_infer("add_sub", [AB[0], ("INPUT1", "FP32", A)], code=bad))
    yield case("grpc_shape_small", grpc_infer("add_sub", [AB[0], ("INPUT1", "INT32", A[:, :15])], code=bad))
    yield case("grpc_rank_1", grpc_infer("add_sub", [(n, t, a[0]) for n, t, a in AB], code=bad))
    yield case("grpc_batch_too_large", grpc_infer("add_sub", [(n, t, np.tile(a, (9, 1))) for n, t, a in AB], code=bad))
    yield case("grpc_batches_differ", grpc_infer("add_sub", [AB[0], ("INPUT1", "INT32", np.tile(B, (2, 1)))], code=bad))
    yield case("grpc_output_unknown", grpc_infer("add_sub", AB, ["OUTPUT7"], code=bad))
    for name, change in {"raw_short": lambda r: r.raw_input_contents.__setitem__(0, b"1234"), "raw_missing": lambda r: r.raw_input_contents.pop(),
                         "both_forms": lambda r: r.inputs[0].contents.int_contents.append(1),
                         "datatype_unknown": lambda r: setattr(r.inputs[0], "datatype", "FP33"),
                         "huge_shape": lambda r: r.inputs[0].shape.__setitem__(slice(None), [HUGE, HUGE]),
                         "negative_shape": lambda r: r.inputs[0].shape.__setitem__(slice(None), [1, -16]),
                         "no_name": lambda r: setattr(r.inputs[0], "name", "")}.items():
        request = grpc_request("add_sub", AB)
        change(request)
        yield case(f"grpc_{name}", Grpc("ModelInfer", request, code=bad, own=WORDED if name == "datatype_unknown" else ()))
    for name, change in {"typed_short": lambda r: r.inputs[0].contents.int_contents.pop(),
                         "typed_empty": lambda r: r.inputs[0].ClearField("contents"),
                         "typed_of_another": lambda r: r.inputs[0].contents.fp32_contents.append(1)}.items():
        request = grpc_request("add_sub", AB, raw=False)
        change(request)
        yield case(f"grpc_{name}", Grpc("ModelInfer", request, code=bad, own=WORDED if name == "typed_of_another" else ()))
    yield case("grpc_broken_model", grpc_infer("broken", AB, code="NOT_FOUND"))


CASES = [*malformed_cases(), *input_cases(), *size_cases(), *grpc_cases()]
