# SPDX-License-Identifier: Apache-2.0
"""HTTP itself: connections that stay open, requests one behind the other, bodies in chunks, odd methods and paths."""
import json
import socket

from .steps import Local, case
from .tensors import JSON_AB

BODY = json.dumps({"inputs": JSON_AB, "id": "one"}).encode()
PATH = "/v2/models/add_sub/infer"


def request(path=PATH, body=BODY, method="POST", version="1.1", headers=(), length=True):
    lines = [f"{method} {path} HTTP/{version}", "Host: localhost", *headers]
    if length and (body or method == "POST"):
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def read_answer(file):
    """(status, body) of the next answer; None at the end of the connection."""
    line = file.readline()
    if not line:
        return None
    headers = {}
    while (header := file.readline()) not in (b"\r\n", b"\n", b""):
        name, _, value = header.decode().partition(":")
        headers[name.strip().lower()] = value.strip()
    status = int(line.split()[1])
    if status == 100:
        return read_answer(file)
    return status, file.read(int(headers.get("content-length", 0))).decode(errors="replace")


def talk(*parts, statuses=(200,), then_closed=False):
    """Sends the parts, reads an answer for each status; with `then_closed` the server must end the connection."""
    def run(server):
        with socket.create_connection(("127.0.0.1", server.http_port), timeout=20) as connection, connection.makefile("rb") as file:
            for part in parts:
                connection.sendall(part)
            found = [read_answer(file) for _ in statuses]
            got = [None if a is None else a[0] for a in found]
            assert got == list(statuses), f"{server.kind} answered {got}"
            if then_closed:
                assert file.read() == b"", "there is more"
            return [a for a in found if a[0] == 200]  # parsers word errors in their own way
    return Local(run)


def chunked(body, size):
    parts = [body[i:i + size] for i in range(0, len(body), size)]
    return b"".join(f"{len(p):x}\r\n".encode() + p + b"\r\n" for p in parts) + b"0\r\n\r\n"


CASES = [
    case("connection_two_requests", talk(request(), request(), statuses=(200, 200))),
    # Triton never answers the second request, and looks for a model 'mldp'.
    case("connection_pipelined", talk(request() + request("/v2/health/live", b"", "GET") + request(), statuses=(200, 200, 200)), only="anymps"),
    case("connection_byte_by_byte", talk(*[bytes([b]) for b in request("/v2/models/mlp", b"", "GET")]), only="anymps"),
    case("connection_body_in_parts", talk(request()[:200], request()[200:300], request()[300:])),
    case("connection_chunked", talk(request(body=b"", headers=["Transfer-Encoding: chunked"], length=False) + chunked(BODY, 100))),
    case("connection_expect_continue", talk(request(headers=["Expect: 100-continue"]))),
    case("connection_close", talk(request(headers=["Connection: close"]), then_closed=True)),
    case("connection_http_1_0", talk(request(version="1.0"), then_closed=True)),
    case("connection_header_in_lower_case", talk(request(headers=[f"inference-header-content-length: {len(BODY)}"]))),
    case("connection_error_then_answer", talk(request(body=b"{"), request(), statuses=(500, 200))),
    case("connection_get_with_body", talk(request("/v2/health/live", b"xyz", "GET"))),
    case("connection_query", talk(request("/v2/health/live?x=1", b"", "GET"))),
    # Triton takes the path as it stands.
    case("connection_percent", talk(request("/v2/models/ml%70", b"", "GET")), only="anymps"),
    case("connection_delete", talk(request("/v2/models/mlp", b"", "DELETE"), statuses=(405,))),
    case("connection_put", talk(request(method="PUT"), statuses=(405,))),
]
