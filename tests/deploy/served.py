# SPDX-License-Identifier: Apache-2.0
"""Starts a server with the arguments of an image or a manifest, on free ports of loopback, and asks it over TLS."""
import http.client
import re
import ssl
import subprocess
import time

import grpc
from tritonclient.grpc import InferenceServerClient as GrpcClient
from tritonclient.http import InferenceServerClient as HttpClient

from tests.doors.server.servers import free_ports, spawn
from tests.doors.triton.calls import infer

NAMES = ("http", "grpc", "metrics")


def certificate(folder):
    """The files of a Kubernetes secret of type tls."""
    folder.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "tls.key", "-out", "tls.crt", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], cwd=folder, check=True, capture_output=True)
    return folder / "tls.crt"


def start(kind, program, arguments, log, mounts=None, environment=None):
    """`mounts`: {path there: path here}; $(NAME) is replaced as Kubernetes does. Other flags are as they were given."""
    ports = dict(zip(NAMES, free_ports(3)))
    words = [re.sub(r"\$\((\w+)\)", lambda m: environment[m[1]], a) for a in arguments]
    words = [w for w in words if not re.match(r"--(http|grpc|metrics)-(address|port)=", w)]
    for there, here in (mounts or {}).items():
        words = [re.sub(rf"={there}(?=/|$)", f"={here}", w) for w in words]
    words += [f"--{name}-address=127.0.0.1" for name in NAMES] + [f"--{name}-port={port}" for name, port in ports.items()]
    return spawn(kind, [*program, *words], list(ports.values()), log, environment, wait=None)


def get(server, path, headers=None, trust=None, port=None, seconds=60):
    """Status of a GET, once the port answers; `trust`: the certificate, for TLS."""
    end = time.monotonic() + seconds
    while True:
        context = ssl.create_default_context(cafile=str(trust)) if trust else None
        place = ("127.0.0.1", port or server.http_port)
        connection = http.client.HTTPSConnection(*place, timeout=20, context=context) if trust else http.client.HTTPConnection(*place, timeout=20)
        try:
            connection.request("GET", path, headers=headers or {})
            return connection.getresponse().status
        except ConnectionRefusedError:
            assert time.monotonic() < end and server.process.poll() is None, server.tail()
            time.sleep(0.05)
        finally:
            connection.close()


def wait(server, path="/v2/health/ready", trust=None, seconds=60):
    end = time.monotonic() + seconds
    while get(server, path, trust=trust) != 200:
        assert time.monotonic() < end and server.process.poll() is None, server.tail()
        time.sleep(0.05)


def secure_infer(server, protocol, trust, model, headers, **arrays):
    """An inference of tritonclient over TLS."""
    if protocol == "http":
        context = ssl.create_default_context(cafile=str(trust))
        using = HttpClient(server.http, ssl=True, ssl_context_factory=lambda: context)
    else:
        using = GrpcClient(server.grpc, creds=grpc.ssl_channel_credentials(trust.read_bytes()))
    try:
        return infer(server, model, protocol, using=using, headers=headers, **arrays)
    finally:
        using.close()
