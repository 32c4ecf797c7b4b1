# SPDX-License-Identifier: Apache-2.0
"""What a client may not do: run code, leave the operator's folders, call what is closed, speak for a web page."""
import base64
import http.client
import json
import os
import ssl
import subprocess
import time

import grpc
import numpy as np
import pytest
import tritonclient.http as client
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from ..make_repository import Quoted, Repository, io, mlp, node, tensor
from ..servers import KINDS, ROOT, certificate, command, launch, start

EXPLICIT = ["--model-control-mode=explicit"]
LIBRARY = r"""
#include <stdio.h>
#include "anymps/anymps.h"
__attribute__((constructor)) static void begin(void) { FILE* file = fopen(MARK, "w"); if (file) fclose(file); }
const char* amps_op_library(amps_status (*add)(const amps_custom_op*)) { (void)add; return 0; }
"""


@pytest.fixture
def folder(tmp_path):
    repository = Repository(tmp_path / "repository")
    mlp(repository, "m", seed=1)
    return repository.folder


def call(port, method, path, body=None, headers=None, context=None):
    kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
    connection = kind("127.0.0.1", port, timeout=20, **({"context": context} if context else {}))
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode(errors="replace")
    finally:
        connection.close()


def library(tmp_path, where, name):
    """A library whose constructor leaves a mark; returns the mark."""
    mark = tmp_path / f"{name}.ran"
    (tmp_path / "op.c").write_text(LIBRARY)
    where.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{ROOT / 'include'}", f'-DMARK="{mark}"', "-o", where / name, tmp_path / "op.c"], check=True)
    return mark


def test_a_load_request_runs_no_code(folder, tmp_path):
    """Neither a library that comes with the request, nor one that lies somewhere; only one out of the operator's folder."""
    sent = library(tmp_path, tmp_path / "sent", "libsent.so")
    lying = library(tmp_path, tmp_path / "lying", "liblying.so")
    own = library(tmp_path, tmp_path / "ops", "libown.so")
    (tmp_path / "ops" / "liblink.so").symlink_to(tmp_path / "lying" / "liblying.so")
    model = (folder / "m" / "1" / "model.onnx").read_bytes()
    code = (tmp_path / "sent" / "libsent.so").read_bytes()

    def load(server, name, **files):
        parameters = {"config": json.dumps({"backend": "metal_mps", "model_operations": {"op_library_filename": [str(name)]}}),
                      **{f"file:{k}": base64.b64encode(v).decode() for k, v in files.items()}}
        return call(server.http_port, "POST", "/v2/repository/models/new/load", json.dumps({"parameters": parameters}))

    for flags in ([], [f"--op-library-directory={tmp_path / 'ops'}"]):
        with start("anymps", folder, tmp_path / "log", [*EXPLICIT, *flags]) as server:
            for name in ("libsent.so", "1/libsent.so", tmp_path / "lying" / "liblying.so", "../lying/liblying.so", "liblink.so"):
                status, _, text = load(server, name, **{"1/model.onnx": model, "libsent.so": code, "1/libsent.so": code})
                assert status == 400 and "op library" in text, text
            assert not sent.exists() and not lying.exists() and not own.exists()
            status, _, text = load(server, "libown.so", **{"1/model.onnx": model})
            assert (status == 200) == bool(flags) == own.exists(), text


def test_restricted_apis_are_tritons(folder, tmp_path):
    """Which calls belong to a group, and what those without the header are told, over both protocols."""
    flags = [*EXPLICIT, "--load-model=m", "--http-restricted-api=model-repository,logging:admin=a=b", "--http-restricted-api=health:h=1",
             "--grpc-restricted-protocol=model-repository,inference:admin=secret", "--grpc-restricted-protocol=statistics:h=1"]
    paths = [("GET", "/v2/health/live"), ("GET", "/v2/health/ready"), ("GET", "/v2/models/m/ready"), ("GET", "/v2"), ("GET", "/v2/models/m"),
             ("GET", "/v2/models/m/config"), ("GET", "/v2/models/m/stats"), ("POST", "/v2/repository/index"), ("GET", "/v2/repository/index"),
             ("POST", "/v2/repository/models/none/unload"), ("GET", "/v2/logging"), ("GET", "/v2/trace/setting"), ("GET", "/v2/systemsharedmemory/status")]
    rpcs = {"ServerLive": pb.ServerLiveRequest(), "ModelReady": pb.ModelReadyRequest(name="m"), "ServerMetadata": pb.ServerMetadataRequest(),
            "ModelStatistics": pb.ModelStatisticsRequest(name="m"), "RepositoryIndex": pb.RepositoryIndexRequest(),
            "ModelInfer": pb.ModelInferRequest(model_name="none"), "LogSettings": pb.LogSettingsRequest()}
    found = {}
    for kind in KINDS:
        server = launch(kind, folder, tmp_path / f"{kind}.log", flags, wait=None)
        try:
            end = time.monotonic() + 60
            while True:
                try:
                    if call(server.http_port, "GET", "/v2/models/m")[0] == 200:
                        break
                except OSError:
                    pass
                assert time.monotonic() < end and server.process.poll() is None, server.tail()
                time.sleep(0.05)
            answers = []
            for method, path in paths:
                for headers in ({}, {"admin": "a=b", "H": "1"}, {"admin": "wrong", "h": "2"}):
                    status, _, text = call(server.http_port, method, path, headers=headers)
                    answers.append((path, headers, status, text if status == 403 else ""))
            with grpc.insecure_channel(server.grpc) as channel:
                stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
                for name, request in rpcs.items():
                    for metadata in ([], [("triton-grpc-protocol-admin", "secret"), ("triton-grpc-protocol-h", "1")], [("admin", "secret"), ("h", "1")]):
                        try:
                            getattr(stub, name)(request, timeout=20, metadata=metadata)
                            answers.append((name, metadata, "OK"))
                        except grpc.RpcError as error:
                            answers.append((name, metadata, error.code(), error.details()))
            found[kind] = answers
        finally:
            server.stop()
    assert found["anymps"] == found["triton"]
    assert any(answer[2] == 403 for answer in found["anymps"])


def test_grpc_health_belongs_to_its_group(folder, tmp_path):
    with start("anymps", folder, tmp_path / "log", ["--grpc-restricted-protocol=health:h=1"]) as server, grpc.insecure_channel(server.grpc) as channel:
        for method in (channel.unary_unary("/grpc.health.v1.Health/Check"), channel.unary_stream("/grpc.health.v1.Health/Watch")):
            def ask(metadata):
                answer = method(b"", timeout=20, metadata=metadata)
                return answer if isinstance(answer, bytes) else next(answer)
            assert ask([("triton-grpc-protocol-h", "1")]) == b"\x08\x01"
            with pytest.raises(grpc.RpcError) as error:
                ask([])
            assert error.value.code() == grpc.StatusCode.UNAVAILABLE and "restricted" in error.value.details()


def test_web_pages(folder, tmp_path):
    page = {"Origin": "http://app.example"}
    body = json.dumps({"inputs": [{"name": "x", "shape": [1, 16], "datatype": "FP32", "data": [0] * 16}]})
    with start("anymps", folder, tmp_path / "log", EXPLICIT) as server:
        for path in ("/v2/models/m/infer", "/v2/repository/models/m/load", "/v2/logging"):
            status, headers, text = call(server.http_port, "POST", path, body, page)
            assert status == 403 and "--http-allow-origin" in text and "Access-Control-Allow-Origin" not in headers
        assert call(server.http_port, "GET", "/v2", headers={"Host": "rebound.example"})[0] == 403
        assert call(server.http_port, "GET", "/", headers={"Origin": f"http://{server.http}"})[0] == 200
        assert call(server.metrics_port, "GET", "/metrics", headers=page)[0] == 403
        assert call(server.http_port, "GET", "/v2/models/m/ready")[0] == 400  # nothing was loaded
    with start("anymps", folder, tmp_path / "log", ["--http-allow-origin=http://app.example"], wait="/v2/health/ready") as server:
        asks = {**page, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        status, headers, _ = call(server.http_port, "OPTIONS", "/v2/models/m/infer", headers=asks)
        assert status == 200 and headers["Access-Control-Allow-Origin"] == "http://app.example" and headers["Access-Control-Allow-Headers"] == "content-type"
        status, headers, _ = call(server.http_port, "POST", "/v2/models/m/infer", body, page)
        assert status == 200 and headers["Access-Control-Allow-Origin"] == "http://app.example"
        assert call(server.http_port, "POST", "/v2/models/m/infer", body, {"Origin": "http://other.example"})[0] == 403


def test_metrics_follow_tls_and_key(folder, tmp_path):
    cert, key = certificate(tmp_path)
    tls = ["--http-use-ssl=1", f"--http-server-cert={cert}", f"--http-server-key={key}"]
    context = ssl.create_default_context(cafile=str(cert))

    def until_it_answers(server, *arguments, **more):
        end = time.monotonic() + 60
        while True:
            try:
                return call(*arguments, **more)
            except OSError:
                assert time.monotonic() < end and server.process.poll() is None, server.tail()
                time.sleep(0.05)
    with start("anymps", folder, tmp_path / "log", [*tls, "--api-key=secret"], wait=None) as server:
        until_it_answers(server, server.http_port, "GET", "/v2/health/live", context=context)
        assert call(server.metrics_port, "GET", "/metrics", context=context)[0] == 401
        status, _, text = call(server.metrics_port, "GET", "/metrics", headers={"Authorization": "Bearer secret"}, context=context)
        assert status == 200 and "nv_inference_count" in text
        with pytest.raises((OSError, http.client.HTTPException)):
            call(server.metrics_port, "GET", "/metrics")
    with start("anymps", folder, tmp_path / "log", [*tls, "--metrics-use-ssl=false"], wait=None) as server:
        until_it_answers(server, server.http_port, "GET", "/v2/health/live", context=context)
        assert call(server.metrics_port, "GET", "/metrics")[0] == 200


def test_backend_options(folder, tmp_path):
    repository = Repository(folder)
    repository.model("bare", [node("Relu", ["x"], ["y"])], [tensor("x", "FP32", ["N", 4])], [tensor("y", "FP32", ["N", 4])], None)
    repository.model("own", [node("Relu", ["x"], ["y"])], [tensor("x", "FP32", ["N", 4])], [tensor("y", "FP32", ["N", 4])],
                     {"parameters": {"key": Quoted("threads"), "value": {"string_value": Quoted("1")}}})
    flags = ["--backend-config=default-max-batch-size=9", "--backend-config=metal_mps,threads=2", f"--backend-config=metal_mps,cache_dir={tmp_path / 'cache'}"]
    with start("anymps", folder, tmp_path / "log", flags, {"TRITON_MPS_VERBOSE": "1"}, wait="/v2/health/ready") as server:
        config = json.loads(server.get("/v2/models/bare/config")[1])
        assert config["max_batch_size"] == 9 and not config["parameters"]
        assert list((tmp_path / "cache").glob("*.mps"))
        lines = [line for line in server.log.read_text().splitlines() if "optimization level" in line]
        threads = {name: next(line for line in lines if f"'{name}'" in line) for name in ("bare", "own")}
        assert f"{min(2, os.cpu_count())} threads" in threads["bare"] and "1 threads" in threads["own"]


def test_a_repository_without_models_is_told(tmp_path):
    (tmp_path / "models").mkdir()
    with start("anymps", tmp_path / "models", tmp_path / "log", wait="/v2/health/ready") as server:
        assert f"the model repository '{tmp_path / 'models'}' has no model" in server.log.read_text()
        assert "NAME/1/model.onnx" in server.log.read_text()


def test_idle_memory_goes_back(tmp_path):
    """No request comes any more, and what an unloaded model needed is given back after MPS_MAX_BUFFER_AGE."""
    repository = Repository(tmp_path / "repository")
    nodes = [node("Transpose", ["x"], ["a"], perm=[1, 0]), node("Softmax", ["a"], ["b"], axis=0), node("Transpose", ["b"], ["y"], perm=[1, 0])]
    repository.model("wide", nodes, [tensor("x", "FP32", ["N", 1024])], [tensor("y", "FP32", ["N", 1024])],
                     {"max_batch_size": 0, "input": io("x", "FP32", [-1, 1024]), "output": io("y", "FP32", [-1, 1024])})
    flags = [*EXPLICIT, "--load-model=wide"]
    with start("anymps", repository.folder, tmp_path / "log", flags, {"MPS_MAX_BUFFER_AGE": "500"}, wait="/v2/health/ready") as server:
        def memory(name):
            return sum(device[name] for device in json.loads(server.get("/status.json")[1])["memory"]["devices"])
        x = client.InferInput("x", [1024, 1024], "FP32")
        x.set_data_from_numpy(np.zeros((1024, 1024), np.float32))
        with client.InferenceServerClient(server.http) as sender:
            sender.infer("wide", [x])
            assert memory("peak_allocated") >= 4 << 20
            sender.unload_model("wide")
        end = time.monotonic() + 30
        while memory("reserved") > 0 and time.monotonic() < end:
            time.sleep(0.1)
        assert memory("reserved") == 0


@pytest.mark.parametrize("flags", [["--backend-config=metal_mps,thread=1"], ["--http-restricted-api=everything:k=v"], ["--op-library-directory=/nowhere"]])
def test_flags_that_would_do_nothing_are_refused(flags, folder):
    done = subprocess.run([*map(str, command("anymps")), f"--model-repository={folder}", *flags], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and flags[0].split("=")[0] in done.stderr
