# SPDX-License-Identifier: Apache-2.0
"""Sequences, streams, queues, priorities, timeouts, the response cache, generate."""
from .steps import Grpc, Http, Together, case, grpc_infer, grpc_request, json_infer, json_input
from .tensors import AB, JSON_AB, SUM


def sequence(model, x, corrid, start=False, end=False, expect=None, **fields):
    parameters = {"sequence_id": corrid, "sequence_start": start, "sequence_end": end}
    return json_infer(model, [json_input("x", "FP32", [[x]])], parameters=parameters, expect=None if expect is None else {"y": [[expect]]}, **fields)


def grpc_sequence(model, x, corrid, start=False, end=False):
    return grpc_request(model, [("x", "FP32", [[x]])], parameters={"sequence_id": corrid, "sequence_start": start, "sequence_end": end})


def sequence_cases():
    for model in ("sequence", "sequence_oldest"):
        yield case(f"http_{model}", sequence(model, 1, 7, start=True, expect=70101), sequence(model, 2, 7, expect=70002),
                   sequence(model, 3, 7, end=True, expect=71003))
        yield case(f"http_{model}_two", sequence(model, 1, 7, start=True, expect=70101), sequence(model, 1, 8, start=True, expect=80101),
                   sequence(model, 2, 7, end=True, expect=71002), sequence(model, 2, 8, end=True, expect=81002))
        yield case(f"http_{model}_of_one", sequence(model, 5, 9, start=True, end=True, expect=91105))
        yield case(f"http_{model}_without_start", sequence(model, 1, 99, status=400, error="START"))
        yield case(f"http_{model}_without_id", json_infer(model, [json_input("x", "FP32", [[1]])], status=400, error="correlation"))
        yield case(f"grpc_{model}_stream", Grpc("ModelStreamInfer", [grpc_sequence(model, 1, 5, start=True), grpc_sequence(model, 2, 5),
                                                                     grpc_sequence(model, 3, 5, end=True)],
                                                outputs=[{"y": [[50101]]}, {"y": [[50002]]}, {"y": [[51003]]}]))
    yield case("http_accumulate", sequence("accumulate", 1, 3, start=True, expect=1), sequence("accumulate", 2, 3, expect=3),
               sequence("accumulate", 4, 3, expect=7), sequence("accumulate", 8, 3, end=True, expect=15),
               sequence("accumulate", 1, 3, start=True, end=True, expect=1))
    yield case("http_accumulate_two", sequence("accumulate", 1, 3, start=True, expect=1), sequence("accumulate", 10, 4, start=True, expect=10),
               sequence("accumulate", 2, 3, end=True, expect=3), sequence("accumulate", 20, 4, end=True, expect=30))


def stream_cases():
    requests = [grpc_request("add_sub", AB, request_id=str(i)) for i in range(3)]
    yield case("grpc_stream", Grpc("ModelStreamInfer", requests[:1], outputs=[SUM]))
    yield case("grpc_stream_final", Grpc("ModelStreamInfer", [grpc_request("add_sub", AB, parameters={"triton_enable_empty_final_response": True})],
                                         outputs=[SUM]))
    yield case("grpc_stream_empty", Grpc("ModelStreamInfer", [], outputs=[]))
    yield case("grpc_stream_error_then_answer", Grpc("ModelStreamInfer", [grpc_request("nobody", AB, request_id="bad")], outputs=[None]))
    yield case("grpc_stream_bad_input", Grpc("ModelStreamInfer", [grpc_request("add_sub", AB[:1], request_id="bad")], outputs=[None]))


def slow(priority=0, timeout=0, request_id="", model="slow", **fields):
    parameters = {**({"priority": priority} if priority else {}), **({"timeout": timeout} if timeout else {})}
    return json_infer(model, [json_input("x", "FP32", [[[4]]])], parameters=parameters, id=request_id, **fields)


def queue_cases():
    answer = {"y": [[4]]}
    yield case("http_slow", slow(expect=answer))
    yield case("http_priority", Together((slow(expect=answer, request_id="first"), slow(2, expect=answer, request_id="low"),
                                          slow(1, expect=answer, request_id="high")), delay=0.02))
    yield case("http_priority_out_of_range", slow(9, expect=answer))
    # One runs, one waits; the third gives up before its turn.
    yield case("http_timeout_in_queue", Together((slow(expect=answer), slow(expect=answer), slow(timeout=2000, status=503, error="[Tt]imeout")),
                                                 delay=0.02))
    # One runs, four wait, and no more have a place: the one that runs must still run when the last one comes.
    full = slow(model="slower", status=503, error="[Ee]xceeds maximum queue size")
    yield case("http_queue_full", Together((*[slow(model="slower", expect=answer)] * 5, full, full), delay=0.02))
    grpc_slow = grpc_infer("slow", [("x", "FP32", [[[4]]])], parameters={"timeout": 2000}, code="UNAVAILABLE")
    yield case("grpc_timeout_in_queue", Together((slow(expect=answer), slow(expect=answer), grpc_slow), delay=0.02))


def cache_cases():
    # Triton's cache does not look at the outputs that are asked for, and gives all.
    yield case("http_cached", json_infer("cached", JSON_AB, expect=SUM), json_infer("cached", JSON_AB, expect=SUM),
               json_infer("cached", JSON_AB, expect={"OUTPUT1": SUM["OUTPUT1"]}, outputs=[{"name": "OUTPUT1"}], same=False),
               grpc_infer("cached", AB, expect=SUM))


def generate_cases():
    path = "/v2/models/identity_fp32/generate"
    yield case("http_generate", Http("/v2/models/scale/generate", {"x": list(range(16))}, has={"y": [2.0 * i for i in range(16)]}))
    yield case("http_generate_number", Http(path, {"INPUT0": 3}, has={"OUTPUT0": 3.0}))
    yield case("http_generate_text", Http("/v2/models/identity_bytes/generate", {"INPUT0": "hello"}, has={"OUTPUT0": "hello"}))
    yield case("http_generate_unknown_model", Http("/v2/models/nobody/generate", {"INPUT0": 3}, status=404))
    yield case("http_generate_not_json", Http(path, b"{", status=500))
    yield case("http_generate_stream", Http("/v2/models/identity_bytes/generate_stream", {"INPUT0": "hello"}))


CASES = [*sequence_cases(), *stream_cases(), *queue_cases(), *cache_cases(), *generate_cases()]
