# SPDX-License-Identifier: Apache-2.0
"""A client of the soak run, in a process of its own: well-behaved over HTTP or gRPC, or rude.

    python -m tests.doors.server.soak.client ROLE --kind SERVER --http PORT --grpc HOST:PORT --seconds S --seed N

Prints one line of JSON when its time is over: what it sent, what came back right, and what went wrong.
"""
import argparse
import contextlib
import http.client
import json
import random
import socket
import struct
import sys
import time

import grpc
from tritonclient.grpc import service_pb2_grpc

from ..protocol.cases.errors import CASES as ERRORS
from ..protocol.cases.steps import Http, binary_infer, grpc_request, json_infer, json_input
from ..protocol.sending import grpc_answer, http_answer
from .jobs import COUNTED, is_right, jobs, large

OVERSIZE = 1 << 30
NOT_IN_JSON = ("FP16", "BF16", "BYTES")


class Tally:
    def __init__(self):
        self.counts, self.wrong = {}, []

    def add(self, what, number=1):
        self.counts[what] = self.counts.get(what, 0) + number

    def problem(self, text):
        self.add("problems")
        if len(self.wrong) < 5:
            self.wrong.append(text)

    def answer(self, job, outputs):
        if outputs is not None and is_right(job, outputs):
            self.add("right")
            if job.model == COUNTED:
                self.add("counted")
                self.add("counted_rows", len(job.inputs[0][2]))
        else:
            self.problem(f"wrong answer of {job.model}: {str(outputs)[:300]}")


def over_http(args, tally, until):
    """One connection, kept open; a request that gets no answer is a lost one."""
    connection = http.client.HTTPConnection("127.0.0.1", args.http, timeout=60)
    choose = random.Random(args.seed)
    for job in jobs(args.seed):
        if time.monotonic() > until:
            return
        in_json = choose.random() < 0.3 and all(t not in NOT_IN_JSON for _, t, _ in job.inputs)
        step = json_infer(job.model, [json_input(*i) for i in job.inputs]) if in_json else binary_infer(job.model, job.inputs)
        body = step.body if isinstance(step.body, bytes) else json.dumps(step.body).encode()
        tally.add("sent")
        try:
            connection.request("POST", step.path, body=body, headers=step.headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            tally.problem(f"no answer of {job.model} over HTTP: {error!r}")
            connection.close()
            continue
        answer = http_answer(response.status, {k.lower(): v for k, v in response.getheaders()}, data)
        if response.status != 200:
            tally.problem(f"{job.model} over HTTP: {response.status} {data[:300]!r}")
        else:
            tally.answer(job, answer.get("outputs"))


def over_grpc(args, tally, until):
    """Unary calls and, every now and then, a stream of three."""
    channel = grpc.insecure_channel(args.grpc, options=[("grpc.max_receive_message_length", -1)])
    stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
    work = jobs(args.seed)
    number = 0
    while time.monotonic() < until:
        number += 1
        batch = [next(work) for _ in range(3 if number % 10 == 0 else 1)]
        tally.add("sent", len(batch))
        requests = [grpc_request(j.model, j.inputs, request_id=str(i)) for i, j in enumerate(batch)]
        try:
            if len(batch) == 1:
                answers = [stub.ModelInfer(requests[0], timeout=60)]
            else:
                answers = []
                for message in stub.ModelStreamInfer(iter(requests), timeout=60):
                    if message.error_message:
                        tally.problem(f"stream: {message.error_message}")
                    answers.append(message.infer_response)
        except grpc.RpcError as error:
            tally.problem(f"{[j.model for j in batch]} over gRPC: {error.code().name} {error.details()[:300]}")
            continue
        for answer in answers:  # those of a stream may come in another order
            job = batch[int(answer.id or 0)]
            tally.answer(job, grpc_answer(answer)["outputs"])
        if len(answers) != len(batch):
            tally.problem(f"{len(answers)} answers for {len(batch)} requests of a stream")
    channel.close()


def raw_socket(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    # Closing does not wait and sends a reset, as a process that is killed does.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return connection


def head(path, length, **headers):
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {length}", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def leave_within_the_body(args, choose):
    step = binary_infer("identity_fp32", large(rng_of(choose)).inputs)
    with raw_socket(args.http) as connection:
        connection.sendall(head(step.path, len(step.body), **step.headers) + step.body[:choose.randrange(len(step.body))])


def leave_within_the_answer(args, choose):
    step = binary_infer("identity_fp32", large(rng_of(choose)).inputs)
    with raw_socket(args.http) as connection:
        connection.sendall(head(step.path, len(step.body), **step.headers) + step.body)
        connection.recv(choose.randrange(1, 2000))


def leave_at_once(args, choose):
    """Asks for something slow and is gone before the answer."""
    body = json.dumps({"inputs": [json_input("x", "FP32", [[[1]]])]}).encode()
    with raw_socket(args.http) as connection:
        connection.sendall(head("/v2/models/slow/infer", len(body)) + body)


def cancel_over_grpc(args, choose):
    with grpc.insecure_channel(args.grpc) as channel:
        call = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer.future(grpc_request("slow", [("x", "FP32", [[[1]]])]))
        time.sleep(choose.random() * 0.01)
        call.cancel()


def malformed(args, choose):
    """Every refused request of the table; an answer must come, and it must be an error."""
    case = choose.choice([c for c in ERRORS if isinstance(c.steps[0], Http) and c.only in ("", args.kind)])
    step = case.steps[0]
    body = step.body if step.body is None or isinstance(step.body, bytes) else json.dumps(step.body).encode()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", args.http, timeout=20)) as connection:
        connection.request(step.method or ("GET" if body is None else "POST"), step.path, body=body, headers=step.headers)
        status = connection.getresponse().status
    return None if status >= 400 else f"{case.name} was answered with {status}"


def noise(args, choose):
    """Bytes that are no HTTP at all."""
    with raw_socket(args.http) as connection:
        connection.sendall(choose.randbytes(choose.randrange(1, 3000)))
        with contextlib.suppress(OSError):
            connection.settimeout(0.2)
            connection.recv(1000)


def oversize(args, choose):
    """A body that is announced and never comes; the server must not make room for it."""
    with raw_socket(args.http) as connection:
        connection.sendall(head("/v2/models/identity_fp32/infer", OVERSIZE) + b"x" * 1000)
        with contextlib.suppress(OSError):
            connection.settimeout(0.2)
            connection.recv(1000)


def rng_of(choose):
    import numpy as np
    return np.random.default_rng(choose.randrange(1 << 30))


MANNERS = [leave_within_the_body, leave_within_the_answer, leave_at_once, cancel_over_grpc, malformed, malformed, noise, oversize]


def rude(args, tally, until):
    choose = random.Random(args.seed)
    while time.monotonic() < until:
        manner = choose.choice(MANNERS)
        try:
            problem = manner(args, choose)
        except (OSError, http.client.HTTPException, grpc.RpcError) as error:
            problem = f"{manner.__name__}: {error!r}" if manner is malformed else None
        if problem:
            tally.problem(problem)
        tally.add(manner.__name__)
        time.sleep(0.01)


ROLES = {"http": over_http, "grpc": over_grpc, "rude": rude}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--kind", default="anymps")
    parser.add_argument("--http", type=int, required=True)
    parser.add_argument("--grpc", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    tally = Tally()
    ROLES[args.role](args, tally, time.monotonic() + args.seconds)
    json.dump({"role": args.role, "counts": tally.counts, "wrong": tally.wrong}, sys.stdout)


if __name__ == "__main__":
    main()
