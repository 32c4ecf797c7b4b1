# SPDX-License-Identifier: Apache-2.0
"""Shared memory of the client is free as soon as the answer is there; with our backend in tritonserver, soon after."""
from contextlib import closing

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
import tritonclient.utils.shared_memory as shared_memory

from tests.doors.triton.calls import unregister

from ..servers import KINDS

ROUNDS = 100
A = np.arange(16, dtype=np.int32).reshape(1, 16)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("kind", KINDS)
def test_whoever_has_the_answer_can_unregister(kind, protocol, pairs):
    """Inputs and an output lie in one region, which is registered, used and unregistered again and again."""
    server = pairs["open"].client(kind).server
    module = http_client if protocol == "http" else grpc_client
    key = f"/anymps_release_{kind}_{protocol}"
    region = shared_memory.create_shared_memory_region("region", key, 3 * A.nbytes)
    try:
        shared_memory.set_shared_memory_region(region, [A, A])
        inputs = [module.InferInput(f"INPUT{i}", list(A.shape), "INT32") for i in range(2)]
        for i, each in enumerate(inputs):
            each.set_shared_memory("region", A.nbytes, i * A.nbytes)
        output = module.InferRequestedOutput("OUTPUT0")
        output.set_shared_memory("region", A.nbytes, 2 * A.nbytes)
        with closing(module.InferenceServerClient(server.http if protocol == "http" else server.grpc)) as client:
            for _ in range(ROUNDS):
                shared_memory.set_shared_memory_region(region, [np.zeros_like(A)], offset=2 * A.nbytes)
                client.register_system_shared_memory("region", key, 3 * A.nbytes)
                client.infer("add_sub", inputs, outputs=[output])
                if kind == "triton":
                    unregister(client, "region")
                else:
                    client.unregister_system_shared_memory("region")
                np.testing.assert_array_equal(shared_memory.get_contents_as_numpy(region, np.int32, [1, 16], 2 * A.nbytes), A + A)
    finally:
        shared_memory.destroy_shared_memory_region(region)
