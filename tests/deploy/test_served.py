# SPDX-License-Identifier: Apache-2.0
"""Both servers with the arguments that the manifests give them, and secrets and models where these mount them: requests with the
key go through over TLS, and no others."""
import http.client

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from tests.doors.server.make_repository import Repository, mlp, mlp_answer
from tests.doors.triton.calls import floats
from tests.doors.server.servers import command

from .manifests import SERVER, image, of_kind
from .served import certificate, get, secure_infer, start, wait

KEY = "k" * 32
X = floats(2, 16)


@pytest.fixture
def mounts(tmp_path):
    certificate(tmp_path / "tls")
    repository = Repository(tmp_path / "models" / "repository")
    mlp(repository, "m", instance_group={"count": 1, "kind": "KIND_CPU"})
    return {"/models": tmp_path / "models", "/tls": tmp_path / "tls"}


def served(kind, program, mounts, log):
    container, = [c for d in of_kind("Deployment") for c in d["spec"]["template"]["spec"]["containers"] if image(c) == kind]
    environment = {}
    for variable in container["env"]:
        source = variable.get("valueFrom", {})
        environment[variable["name"]] = KEY if "secretKeyRef" in source else variable.get("value", "2")
    return start(kind, program, container["args"], log, mounts, environment)


@pytest.mark.skipif(not SERVER.exists(), reason="the server is not built")
def test_the_server(mounts, tmp_path):
    trust = mounts["/tls"] / "tls.crt"
    server = served("anymps-server", [SERVER], mounts, tmp_path / "log")
    try:
        wait(server, trust=trust)  # the probes show no key
        for protocol in ("http", "grpc"):
            y = secure_infer(server, protocol, trust, "m", {"x-api-key": KEY}, x=X)["y"]
            np.testing.assert_allclose(y, mlp_answer(X), rtol=1e-4, atol=1e-6)
            for headers in ({}, {"x-api-key": "wrong"}):
                with pytest.raises(InferenceServerException, match="API key"):
                    secure_infer(server, protocol, trust, "m", headers, x=X)
        with pytest.raises((OSError, http.client.HTTPException)):
            get(server, "/v2/health/live")  # without TLS
    finally:
        assert server.stop() == 0, server.tail()


def test_triton(mounts, tmp_path):
    trust = mounts["/tls"] / "tls.crt"
    server = served("anymps-triton", command("triton"), mounts, tmp_path / "log")
    try:
        wait(server)  # the probes, over plain HTTP
        y = secure_infer(server, "grpc", trust, "m", {"triton-grpc-protocol-x-api-key": KEY}, x=X)["y"]
        np.testing.assert_allclose(y, mlp_answer(X), rtol=1e-4, atol=1e-6)
        for headers in ({}, {"triton-grpc-protocol-x-api-key": "wrong"}):
            with pytest.raises(InferenceServerException, match="restricted"):
                secure_infer(server, "grpc", trust, "m", headers, x=X)
        for path in ("/v2", "/v2/models/m", "/v2/models/m/config", "/v2/models/stats", "/v2/logging", "/v2/trace/setting", "/v2/systemsharedmemory/status"):
            assert get(server, path) == 403, path
            assert get(server, path, {"x-api-key": KEY}) == 200, path
    finally:
        server.stop()
