# SPDX-License-Identifier: Apache-2.0
"""What a client can do to our server with bytes alone: memory, file descriptors, endless nesting, streams; and what clients see of its end."""
import gzip
import http.client
import resource
import socket
import ssl
import struct
import threading
import time

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from .cases.steps import grpc_request
from ..make_repository import Repository, mlp
from ..servers import certificate, launch, start

X = np.linspace(0, 1, 16, dtype=np.float32).reshape(1, 16)
MB = 1 << 20
SERVICE = "/inference.GRPCInferenceService/"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    repository = Repository(tmp_path_factory.mktemp("transport") / "repository")
    mlp(repository, "m", seed=1)
    return repository.folder


class Growth:
    """How much the server's memory grows meanwhile, in MB, at its highest."""

    def __init__(self, server):
        self.server, self.most, self.over = server, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        before = self.server.memory_mb()
        while not self.over.is_set():
            self.most = max(self.most, self.server.memory_mb() - before)
            time.sleep(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def is_well(server, metadata=()):
    with grpc.insecure_channel(server.grpc) as channel:
        service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(grpc_request("m", [("x", "FP32", X)]), timeout=20, metadata=metadata)
    assert server.get("/v2/health/ready")[0] == 200


def until_well(server):
    end = time.monotonic() + 20
    while True:
        try:
            return is_well(server)
        except (OSError, grpc.RpcError, AssertionError):
            assert time.monotonic() < end, "the server does not recover"
            time.sleep(0.1)


def send_bytes(server, method, data, metadata=()):
    """Bytes as the message of a call, one after the other on a stream; the code that comes back."""
    with grpc.insecure_channel(server.grpc, options=[("grpc.max_send_message_length", -1)]) as channel:
        kind = channel.stream_stream if method == "ModelStreamInfer" else channel.unary_unary
        call = kind(SERVICE + method, request_serializer=None, response_deserializer=None)
        try:
            if method == "ModelStreamInfer":
                list(call(iter([data]), timeout=60, metadata=metadata))
            else:
                call(data, timeout=60, metadata=metadata)
        except grpc.RpcError as error:
            return error.code().name
    return "OK"


def test_messages_that_are_refused_are_not_held(folder, tmp_path):
    data, key = bytes(256 * MB), [("x-api-key", "secret")]
    with start("anymps", folder, tmp_path / "log", ["--api-key=secret", f"--http-max-input-size={16 * MB}", f"--max-held-bytes={64 * MB}"], wait="/v2/health/ready") as server:
        is_well(server, key)
        with Growth(server) as stranger:
            for method in ("ModelInfer", "ModelStreamInfer", "RepositoryModelLoad"):
                assert send_bytes(server, method, data) == "UNAUTHENTICATED", method
        assert stranger.most < 32
        with Growth(server) as large:
            for method in ("ModelInfer", "ModelStreamInfer"):
                assert send_bytes(server, method, data, key) == "RESOURCE_EXHAUSTED", method
            assert send_bytes(server, "ServerLive", data) == "RESOURCE_EXHAUSTED"  # which is for everybody
        assert large.most < 128
        is_well(server, key)


def test_requests_that_are_held_are_bounded_over_grpc(folder, tmp_path):
    """Each is within the limit of one; together they are not."""
    with start("anymps", folder, tmp_path / "log", [f"--http-max-input-size={8 * MB}", "--max-held-bytes=1"], wait="/v2/health/ready") as server:
        is_well(server)
        with Growth(server) as growth, grpc.insecure_channel(server.grpc, options=[("grpc.max_send_message_length", -1)]) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            request = pb.ModelInferRequest(model_name="m", raw_input_contents=[bytes(7 * MB)])
            codes = [f.code().name for f in [stub.ModelInfer.future(request, timeout=60) for _ in range(40)]]
        assert set(codes) <= {"INVALID_ARGUMENT", "UNAVAILABLE", "RESOURCE_EXHAUSTED"}, codes
        assert growth.most < 128
        is_well(server)


def test_descriptors_that_run_out_are_said_and_come_back(folder, tmp_path):
    with start("anymps", folder, tmp_path / "log", wait="/v2/health/ready") as server:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (128, 128))
        for port in (server.http_port, server.grpc_port):
            clients = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(200)]
            answer = clients[-1].recv(1000)  # it is answered, not left to wait
            assert answer == b"" if port == server.grpc_port else answer.startswith(b"HTTP/1.1 503 ") and b"Connection: close" in answer
            for each in clients:
                each.close()
            until_well(server)


def test_nobody_who_was_heard_is_left_without_an_answer(folder, tmp_path):
    """Clients that send one request after the other on a connection, while the server is told to end."""
    server = launch("anymps", folder, tmp_path / "log", wait="/v2/health/ready")
    ends, asked = [], threading.Semaphore(0)

    def over_http():
        connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=30)
        try:
            while True:
                connection.request("GET", "/v2/models/m")
                answer = connection.getresponse()
                answer.read()
                asked.release()
                if answer.getheader("Connection") == "close":
                    return ends.append(f"HTTP {answer.status}")
        except (OSError, http.client.HTTPException) as error:
            ends.append(f"HTTP {error!r}")

    def over_grpc():
        with grpc.insecure_channel(server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            try:
                while True:
                    stub.ModelInfer(grpc_request("m", [("x", "FP32", X)]), timeout=30)
                    asked.release()
            except grpc.RpcError as error:
                ends.append(f"gRPC {error.code().name}")
    threads = [threading.Thread(target=each) for each in [over_http, over_grpc] * 4]
    for thread in threads:
        thread.start()
    for _ in range(200):
        asked.acquire()
    assert server.stop() == 0
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["HTTP 200"] * 4 + ["gRPC UNAVAILABLE"] * 4


def post(server, path, body, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    try:
        connection.request("POST", path, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def test_bodies_made_to_hurt(folder, tmp_path):
    paths = ["/v2/models/m/infer", "/v2/models/m/generate", "/v2/logging", "/v2/trace/setting", "/v2/repository/index",
             "/v2/repository/models/m/load", "/v2/systemsharedmemory/region/r/register"]
    shapes = [b"[" * (2 * MB), b'{"a":' * MB, b'{"inputs":' + b"[" * (2 * MB), b'{"x":' + b"9" * (2 * MB) + b"}", b'{"x":' + b"[" * MB + b"]" * MB + b"}",
              b'{"x":1e' + b"9" * 1000 + b"}", b'{"inputs":[{"name":"x","datatype":"FP32","shape":[9223372036854775807,9223372036854775807],"data":[1]}]}']
    answers = (400, 404, 500, 503, 200)  # 503: loading is not allowed; 200: those that ignore what they do not know
    with start("anymps", folder, tmp_path / "log", [], wait="/v2/health/ready") as server:
        for path in paths:
            for shape in shapes:
                assert post(server, path, shape) in answers, (path, shape[:40])
        bomb = gzip.compress(bytes(256 * MB), 1)
        with Growth(server) as growth:
            assert post(server, paths[0], bomb, Content_Encoding="gzip") == 400
        assert growth.most < 160
        is_well(server)


def frame(kind, stream, payload=b"", flags=0):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0)
STREAM = b"\x83\x86" + field(b":path", SERVICE.encode() + b"ModelStreamInfer") + field(b":authority", b"h") + field(b"te", b"trailers") + \
    field(b"content-type", b"application/grpc")


def test_streams_that_are_opened_and_dropped(folder, tmp_path):
    """HTTP/2 by hand: the server says how many streams it takes, and outlives clients that open and reset them as fast as they can."""
    with start("anymps", folder, tmp_path / "log", ["--grpc-max-streams=100"], wait="/v2/health/ready") as server:
        is_well(server)
        with Growth(server) as growth:
            for _ in range(2):
                with socket.create_connection(("127.0.0.1", server.grpc_port), timeout=20) as client:
                    client.sendall(PREFACE)
                    settings = client.recv(1000)
                    length = int.from_bytes(settings[:3], "big")
                    values = dict(struct.unpack(">HI", settings[9 + i:15 + i]) for i in range(0, length, 6))
                    assert values[3] == 100
                    try:
                        for i in range(20):
                            client.sendall(b"".join(frame(1, s, STREAM, 4) + frame(3, s, struct.pack(">I", 8)) for s in range(1 + 1000 * i, 1001 + 1000 * i, 2)))
                    except OSError:
                        pass  # the server may have had enough of it
        assert growth.most < 128
        is_well(server)


def test_streams_that_only_wait_are_counted(folder, tmp_path):
    with start("anymps", folder, tmp_path / "log", ["--grpc-max-streams=10000"], wait="/v2/health/ready") as server:
        with socket.create_connection(("127.0.0.1", server.grpc_port), timeout=20) as client:
            client.sendall(PREFACE + b"".join(frame(1, stream, STREAM, 4) for stream in range(1, 10000, 2)))
            end = time.monotonic() + 20
            with pytest.raises(grpc.RpcError) as error:
                while time.monotonic() < end:
                    is_well(server)
            assert error.value.code().name == "UNAVAILABLE"
        until_well(server)


def test_handshakes_and_connections_that_stand_still_are_ended(folder, tmp_path):
    cert, key = certificate(tmp_path)
    flags = ["--http-use-ssl=1", f"--http-server-cert={cert}", f"--http-server-key={key}", "--http-request-timeout-secs=1", "--http-idle-timeout-secs=1"]
    with start("anymps", folder, tmp_path / "log", flags, wait=None) as server:
        end = time.monotonic() + 30
        while "Started HTTPService" not in server.tail():
            assert time.monotonic() < end and server.process.poll() is None, server.tail()
            time.sleep(0.05)
        with socket.create_connection(("127.0.0.1", server.http_port), timeout=20) as silent, \
                socket.create_connection(("127.0.0.1", server.http_port), timeout=20) as half:
            half.sendall(b"\x16\x03\x01\x02\x00\x01")
            assert silent.recv(1) == b"" and half.recv(1) == b""
        with socket.create_connection(("127.0.0.1", server.grpc_port), timeout=20) as idle:
            idle.sendall(PREFACE)
            while idle.recv(1000):
                pass
        context = ssl.create_default_context(cafile=str(cert))
        with socket.create_connection(("127.0.0.1", server.http_port), timeout=20) as plain, context.wrap_socket(plain, server_hostname="localhost") as idle:
            assert idle.recv(1) == b""
