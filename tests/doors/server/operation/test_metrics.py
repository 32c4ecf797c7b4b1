# SPDX-License-Identifier: Apache-2.0
"""The Prometheus page and the statistics of both servers: the same names, labels and counts after the same requests."""
import json
import re
import time

import numpy as np
import pytest

from ..protocol.cases.steps import grpc_infer, json_infer, json_input
from ..servers import KINDS

# What only a machine with NVIDIA's GPUs has, or a build that pins memory for them.
NOT_OURS = re.compile(r"nv_gpu_|nv_energy|nv_pinned_memory_pool|nv_inference_load_ratio")
ROWS = np.zeros((3, 16), np.float32)


def metrics(server):
    """{name: {labels: value}} of the page."""
    status, text = server.get("/metrics", server.metrics_port)
    assert status == 200
    found = {}
    for line in text.decode().splitlines():
        match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if line.startswith("#") or not match:
            assert line.startswith("#") or not line, f"no metric: {line}"
            continue
        labels = frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
        found.setdefault(match[1], {})[labels] = float(match[3])
    return found


def types(server):
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", server.get("/metrics", server.metrics_port)[1].decode(), re.M))


def value(page, name, model="mlp"):
    return sum(v for labels, v in page[name].items() if ("model", model) in labels)


def send(client, requests):
    for i in range(requests):
        step = json_infer("mlp", [json_input("x", "FP32", ROWS)]) if i % 2 else grpc_infer("mlp", [("x", "FP32", ROWS)])
        answer = client.answer(step)
        assert answer.get("status", 200) == 200 and answer.get("code", "OK") == "OK", answer


@pytest.fixture(params=KINDS)
def client(request, pairs):
    return pairs["whole"].client(request.param)


def test_counters_count(client):
    before = metrics(client.server)
    send(client, 10)
    after = metrics(client.server)
    change = {name: value(after, name) - value(before, name) for name in after if name.startswith("nv_inference") and name in before
              and any(("model", "mlp") in labels for labels in after[name])}
    assert change["nv_inference_request_success"] == 10
    assert change["nv_inference_count"] == 30
    assert 1 <= change["nv_inference_exec_count"] <= 10
    for name in ("request", "queue", "compute_input", "compute_infer", "compute_output"):
        assert change[f"nv_inference_{name}_duration_us"] >= 0
    assert change["nv_inference_request_duration_us"] >= change["nv_inference_compute_infer_duration_us"] > 0
    assert value(after, "nv_inference_pending_request_count") == 0


def test_failures_count(client):
    before = value(metrics(client.server), "nv_inference_request_failure")
    send(client, 1)
    answer = client.answer(json_infer("mlp", [json_input("x", "FP32", ROWS[:, :3])]))
    assert answer["status"] == 400
    assert value(metrics(client.server), "nv_inference_request_failure") >= before


def test_statistics_count(client):
    def in_batches(stats):
        return sum(b["batch_size"] * b["compute_infer"]["count"] for b in stats["batch_stats"])

    def statistics():
        """Tritonserver hears of a batch after its answers have gone out: when it has."""
        end = time.monotonic() + 10
        while True:
            stats = json.loads(client.server.get("/v2/models/mlp/versions/1/stats")[1])["model_stats"][0]
            if in_batches(stats) == stats["inference_count"] or time.monotonic() > end:
                return stats

    before = statistics()
    send(client, 10)
    after = statistics()
    assert after["inference_count"] - before["inference_count"] == 30
    assert 1 <= after["execution_count"] - before["execution_count"] <= 10
    for name in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        assert after["inference_stats"][name]["count"] - before["inference_stats"][name]["count"] == 10, name
        assert after["inference_stats"][name]["ns"] >= before["inference_stats"][name]["ns"]
    assert after["last_inference"] >= before["last_inference"]
    assert in_batches(after) == after["inference_count"]


def test_same_names_types_and_labels(pairs):
    ours, theirs = (pairs["whole"].client(kind) for kind in ("anymps", "triton"))
    for client in (ours, theirs):
        send(client, 2)
    names = {kind: {n: t for n, t in types(c.server).items() if not NOT_OURS.match(n)} for kind, c in (("ours", ours), ("theirs", theirs))}
    missing = {n: t for n, t in names["theirs"].items() if names["ours"].get(n) != t}
    assert not missing, f"Triton's page has {missing}; ours has {names['ours']}"
    pages = metrics(ours.server), metrics(theirs.server)
    for name in names["theirs"]:
        if name in pages[1]:
            labels = [{key for labels in page.get(name, {}) for key, _ in labels} for page in pages]
            assert labels[0] == labels[1], f"{name} has labels {labels[0]}, Triton's {labels[1]}"
