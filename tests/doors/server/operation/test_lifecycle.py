# SPDX-License-Identifier: Apache-2.0
"""Starting, reloading and ending our server: flags, control modes, drain, TLS, key, limits."""
import http.client
import json
import shutil
import ssl
import subprocess
import threading
import time

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from ..protocol.cases.scheduling import slow
from ..protocol.cases.steps import binary_infer, grpc_request, json_infer, json_input
from ..make_repository import Repository, mlp, mlp_answer, slow_model
from ..protocol.sending import Client, http_answer
from ..servers import certificate, command, launch, start

# 127.0.0.1, ::1 and ::ffff:127.0.0.1 as the kernel prints them.
LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
X = np.linspace(0, 1, 16, dtype=np.float32).reshape(1, 16)


@pytest.fixture
def folder(tmp_path):
    repository = Repository(tmp_path / "repository")
    mlp(repository, "m", seed=1)
    return repository.folder


def infer(server, model="m"):
    client = Client(server)
    try:
        return client.answer(json_infer(model, [json_input("x", "FP32", X)]))
    finally:
        client.close()


def is_seed(answer, seed):
    return answer["status"] == 200 and np.allclose(answer["outputs"]["y"], mlp_answer(X, seed), rtol=1e-4, atol=1e-6)


def test_poll_replaces_a_changed_model_without_a_failed_request(folder, tmp_path):
    with start("anymps", folder, tmp_path / "log", ["--model-control-mode=poll", "--repository-poll-secs=1"], wait="/v2/health/ready") as server:
        assert is_seed(infer(server), 1)
        stop, answers = threading.Event(), []

        def ask():
            while not stop.is_set():
                answers.append(infer(server))
        thread = threading.Thread(target=ask)
        thread.start()
        mlp(Repository(tmp_path / "new"), "m", seed=2)
        replacement = folder / "m" / "1" / "model.new"
        shutil.copy(tmp_path / "new" / "m" / "1" / "model.onnx", replacement)
        replacement.replace(folder / "m" / "1" / "model.onnx")
        end = time.monotonic() + 15
        while time.monotonic() < end and not (answers and is_seed(answers[-1], 2)):
            time.sleep(0.05)
        stop.set()
        thread.join()
        assert is_seed(answers[-1], 2), "the new model is not served"
        assert all(is_seed(a, 1) or is_seed(a, 2) for a in answers)


def test_poll_loads_new_models_and_forgets_removed_ones(folder, tmp_path):
    with start("anymps", folder, tmp_path / "log", ["--model-control-mode=poll", "--repository-poll-secs=1"], wait="/v2/health/ready") as server:
        mlp(Repository(tmp_path / "new"), "another", seed=2)
        (tmp_path / "new" / "another").rename(folder / "another")
        server.wait("/v2/models/another/ready", 15)
        assert is_seed(infer(server, "another"), 2)
        shutil.rmtree(folder / "another")
        end = time.monotonic() + 15
        while time.monotonic() < end and server.get("/v2/models/another/ready")[0] == 200:
            time.sleep(0.1)
        assert server.get("/v2/models/another/ready")[0] == 400
        assert is_seed(infer(server), 1)


def test_ends_on_sigterm_after_the_last_answer(folder, tmp_path):
    slow_model(Repository(folder), "slow", 80, dynamic_batching={})
    server = launch("anymps", folder, tmp_path / "log", wait="/v2/health/ready")
    client, answers = Client(server), []
    threads = [threading.Thread(target=lambda: answers.append(client.answer(slow()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    assert server.stop() == 0
    for thread in threads:
        thread.join()
    client.close()
    assert [a.get("status") for a in answers] == [200] * 4


def test_explicit_loads_only_what_is_named(folder, tmp_path):
    mlp(Repository(folder), "other", seed=2)
    with start("anymps", folder, tmp_path / "log", ["--model-control-mode=explicit", "--load-model=other"], wait="/v2/health/ready") as server:
        assert server.get("/v2/models/m/ready")[0] == 400
        assert is_seed(infer(server, "other"), 2)


def test_a_model_that_fails_ends_the_server_unless_told_otherwise(folder, tmp_path):
    Repository(folder).file("bad/1/model.onnx", b"nothing")
    Repository(folder).config("bad", {"max_batch_size": 0})
    server = launch("anymps", folder, tmp_path / "log", wait=None)
    assert server.process.wait(60) != 0
    assert "bad" in server.tail()
    with start("anymps", folder, tmp_path / "log2", ["--exit-on-error=false", "--strict-readiness=false"], wait="/v2/health/ready") as server:
        assert is_seed(infer(server), 1)


@pytest.mark.parametrize("flags", [["--no-such-flag"], ["--http-port=x"], ["--model-control-mode=sometimes"], ["--log-verbose=much"]])
def test_wrong_flags_are_refused(flags, folder):
    done = subprocess.run([*map(str, command("anymps")), f"--model-repository={folder}", *flags], capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert flags[0].split("=")[0].lstrip("-") in done.stderr + done.stdout


def test_no_repository_is_refused(tmp_path):
    done = subprocess.run([*map(str, command("anymps")), f"--model-repository={tmp_path / 'nothing'}"], capture_output=True, text=True, timeout=30)
    assert done.returncode != 0 and "nothing" in done.stderr + done.stdout


def test_a_port_that_is_taken_is_said(folder, tmp_path):
    with start("anymps", folder, tmp_path / "log") as server:
        done = subprocess.run([*map(str, command("anymps")), f"--model-repository={folder}", f"--http-port={server.http_port}", "--grpc-port=0",
                               "--metrics-port=0"], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and str(server.http_port) in done.stderr + done.stdout


def test_kind_gpu_is_the_projects_device(folder, tmp_path):
    mlp(Repository(folder), "gpu", seed=2, instance_group={"count": 1, "kind": "KIND_GPU", "gpus": [0]})
    with start("anymps", folder, tmp_path / "log", wait="/v2/health/ready") as server:
        assert is_seed(infer(server, "gpu"), 2)


def test_listens_on_loopback_only(folder, tmp_path):
    """Without an address flag nothing but loopback is bound."""
    from ..servers import free_ports
    ports = free_ports(3)
    flags = [f"--{n}-port={p}" for n, p in zip(("http", "grpc", "metrics"), ports)]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen([*map(str, command("anymps")), f"--model-repository={folder}", *flags], stdout=log, stderr=log)
    try:
        end = time.monotonic() + 30
        bound = {}
        while time.monotonic() < end and set(bound) != set(ports):
            bound = listening(ports)
            time.sleep(0.1)
        assert set(bound) == set(ports)
        assert all(address in LOOPBACK for addresses in bound.values() for address in addresses), bound
    finally:
        process.terminate()
        process.wait(30)


def listening(ports):
    """{port: addresses in hex} of the sockets that listen on these."""
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                address, port = fields[1].split(":")
                if fields[3] == "0A" and int(port, 16) in ports:
                    found.setdefault(int(port, 16), set()).add(address)
    return found


def test_bodies_over_the_limit_are_refused(folder, tmp_path):
    with start("anymps", folder, tmp_path / "log", ["--http-max-input-size=10000"], wait="/v2/health/ready") as server:
        assert is_seed(infer(server), 1)
        connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=20)
        try:
            connection.request("POST", "/v2/models/m/infer", body=b"x" * 20000)
            status = connection.getresponse().status
        except (ConnectionError, http.client.RemoteDisconnected):
            status = 413  # closed while the body was on its way
        assert status in (400, 413)
        assert is_seed(infer(server), 1)


def test_tls(folder, tmp_path):
    cert, key = certificate(tmp_path)
    flags = ["--grpc-use-ssl=1", f"--grpc-server-cert={cert}", f"--grpc-server-key={key}", "--http-use-ssl=1", f"--http-server-cert={cert}", f"--http-server-key={key}"]
    with start("anymps", folder, tmp_path / "log", flags, wait=None) as server:
        context = ssl.create_default_context(cafile=str(cert))
        step = binary_infer("m", [("x", "FP32", X)])
        end = time.monotonic() + 30
        while True:
            try:
                connection = http.client.HTTPSConnection("127.0.0.1", server.http_port, timeout=20, context=context)
                connection.request("POST", step.path, body=step.body, headers=step.headers)
                response = connection.getresponse()
                break
            except (ConnectionError, ssl.SSLError):
                assert time.monotonic() < end and server.process.poll() is None, server.tail()
                time.sleep(0.1)
        assert is_seed(http_answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()), 1)
        channel = grpc.secure_channel(server.grpc, grpc.ssl_channel_credentials(cert.read_bytes()))
        answer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(grpc_request("m", [("x", "FP32", X)]), timeout=30)
        assert np.allclose(np.frombuffer(answer.raw_output_contents[0], np.float32), mlp_answer(X, 1), rtol=1e-4)
        channel.close()


def test_api_key(folder, tmp_path):
    with start("anymps", folder, tmp_path / "log", ["--api-key=secret"]) as server:
        def status(path, headers):
            connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=20)
            connection.request("GET", path, headers=headers)
            return connection.getresponse().status
        assert status("/v2/health/live", {}) == 200
        assert status("/v2/models/m", {}) == 401
        assert status("/v2/models/m", {"Authorization": "Bearer wrong"}) == 401
        assert status("/v2/models/m", {"Authorization": "Bearer secret"}) == 200
        with grpc.insecure_channel(server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            with pytest.raises(grpc.RpcError) as error:
                stub.ModelMetadata(pb.ModelMetadataRequest(name="m"), timeout=20)
            assert error.value.code() == grpc.StatusCode.UNAUTHENTICATED
            assert stub.ModelMetadata(pb.ModelMetadataRequest(name="m"), timeout=20, metadata=[("authorization", "Bearer secret")]).name == "m"


def test_trace_file(folder, tmp_path):
    trace = tmp_path / "trace.json"
    flags = ["--trace-config=triton,file=" + str(trace), "--trace-config=level=TIMESTAMPS", "--trace-config=rate=1"]
    for kind in ("triton", "anymps"):
        with start(kind, folder, tmp_path / "log", flags, wait="/v2/health/ready") as server:
            assert is_seed(infer(server), 1)
        written = json.loads(trace.read_text())
        names = {t["name"] for entry in written for t in entry.get("timestamps", [])}
        assert {"REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_END", "REQUEST_END"} <= names, f"{kind}: {names}"
        assert any(entry.get("model_name") == "m" for entry in written)
        trace.unlink()
