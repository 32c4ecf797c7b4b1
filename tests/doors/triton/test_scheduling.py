# SPDX-License-Identifier: Apache-2.0
"""What Triton's core does around the backend: batches, instances, sequences, ensembles, warm-up, cache, cancellation,
statistics."""
import time

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from tritonclient.utils import InferenceServerException

from tests.doors.server import make_repository as made
from tests.doors.server.make_repository import base, io, mlp_answer, node, tensor
from .calls import PROTOCOLS, client, floats, infer, statistics, together
from .calls import tensor as wire


def table(repository, name, **more):
    """Rows of a table by their number; a number that is too large is an error of the run."""
    repository.model(name, [node("Gather", ["rows", "i"], ["y"], axis=0)], [tensor("i", "INT64", ["N", 1])], [tensor("y", "FP32", ["N", 1])],
                     base(8, [io("i", "INT64", [1])], [io("y", "FP32", [1])], **more), {"rows": np.float32([10, 20, 30])})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from tests.doors.server.servers import start
    folder = tmp_path_factory.mktemp("scheduling")
    repository = made.Repository(folder / "models")
    delay = {"dynamic_batching": {"max_queue_delay_microseconds": 200000, "preferred_batch_size": [8]}}
    table(repository, "table", **delay)
    made.add_sub(repository, "batched", **delay)
    made.mlp(repository, "instances", instance_group={"count": 3, "kind": "KIND_CPU"})
    made.mlp(repository)
    for part in (made.sequences, made.ensembles, made.queues):
        part(repository)
    flags = ["--cache-config=local,size=1048576"]
    with start("triton", repository.folder, folder / "log", flags, wait="/v2/health/ready") as running:
        yield running


def test_concurrent_requests_become_one_batch(server):
    a = np.arange(16, dtype=np.int32).reshape(1, 16)
    answers = together(8, lambda i: infer(server, "batched", PROTOCOLS[i % 2], INPUT0=a * i, INPUT1=a)["OUTPUT0"])
    for i, answer in enumerate(answers):
        np.testing.assert_array_equal(answer, a * (i + 1))
    numbers = statistics(server, "batched", rows=8)
    assert numbers["inference_count"] == 8 and numbers["execution_count"] < 8
    assert sum(b["batch_size"] * b["compute_infer"]["count"] for b in numbers["batch_stats"]) == 8
    assert numbers["inference_stats"]["compute_infer"]["ns"] > 0


def test_a_bad_request_fails_alone(server):
    numbers = [0, 1, 99, 2, -1, 0, 1, 50]
    answers = together(8, lambda i: infer(server, "table", i=np.int64([[numbers[i]]]))["y"])
    for number, answer in zip(numbers, answers):
        if -3 <= number < 3:
            assert answer.tolist() == [[[10.0, 20.0, 30.0][number]]]
        else:
            assert isinstance(answer, InferenceServerException) and "gather" in str(answer), answer
    stats = statistics(server, "table")["inference_stats"]
    assert (stats["success"]["count"], stats["fail"]["count"]) == (6, 2)


def test_instances_share_the_work(server):
    x = floats(3, 16)
    calls = 60
    answers = together(6, lambda i: [infer(server, "instances", PROTOCOLS[i % 2], x=x * k)["y"] for k in range(calls // 6)])
    for answer in answers:
        for k, y in enumerate(answer):
            np.testing.assert_allclose(y, mlp_answer(x * k), rtol=1e-4, atol=1e-6)
    assert statistics(server, "instances")["inference_count"] == calls * 3


def test_sequences(server):
    using = client(server, "grpc")
    for model in ("sequence", "sequence_oldest"):
        def ask(value, start=False, end=False, model=model):
            answer = using.infer(model, [wire("grpc", "x", np.float32([[value]]))], sequence_id=3, sequence_start=start, sequence_end=end)
            return answer.as_numpy("y").item()
        assert [ask(1, start=True), ask(2), ask(3, end=True)] == [30101, 30002, 31003]
    sums = [using.infer("accumulate", [wire("grpc", "x", np.float32([[v]]))], sequence_id=9, sequence_start=v == 1,
                        sequence_end=v == 8).as_numpy("y").item() for v in (1, 2, 4, 8)]
    assert sums == [1, 3, 7, 15]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ensemble(server, protocol):
    x = floats(2, 16)
    answer = infer(server, "pipeline", protocol, raw=x)
    np.testing.assert_allclose(answer["scaled"], 2 * x)
    np.testing.assert_allclose(answer["probabilities"], mlp_answer(2 * x), rtol=1e-4, atol=1e-6)


def test_response_cache_and_warm_up(server):
    a = np.arange(16, dtype=np.int32).reshape(1, 16)
    for _ in range(3):
        assert infer(server, "cached", INPUT0=a, INPUT1=a)["OUTPUT0"].tolist() == (2 * a).tolist()
    stats = statistics(server, "cached")["inference_stats"]
    assert stats["cache_hit"]["count"] == 2 and stats["cache_miss"]["count"] == 1
    x = floats(1, 16)
    np.testing.assert_allclose(infer(server, "warm", x=x)["y"], mlp_answer(x), rtol=1e-4, atol=1e-6)


def test_cancellation(server):
    """One runs, the others wait and are given up: they end with CANCELLED, and the server goes on."""
    using = grpc_client.InferenceServerClient(server.grpc)
    results = []
    calls = [using.async_infer("slow", [wire("grpc", "x", np.float32([[[i]]]))], callback=lambda result, error: results.append((result, error)))
             for i in range(4)]
    time.sleep(0.02)
    for call in calls[1:]:
        call.cancel()
    end = time.monotonic() + 30
    while len(results) < 4 and time.monotonic() < end:
        time.sleep(0.01)
    assert len(results) == 4
    assert sum("CANCELLED" in str(error) or "cancelled" in str(error).lower() for _, error in results if error) == 3
    assert infer(server, "slow", x=np.float32([[[4]]]))["y"].tolist() == [[4]]
