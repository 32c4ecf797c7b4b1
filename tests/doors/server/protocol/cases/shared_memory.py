# SPDX-License-Identifier: Apache-2.0
"""Tensors in system shared memory, and the registration of its regions."""
import os
from pathlib import Path

import numpy as np
from tritonclient.grpc import service_pb2 as pb

from .steps import Grpc, Http, Local, case, json_infer
from .tensors import A, B

KEY = f"/anymps_test_{os.getpid()}"
SIZE = 256  # INPUT0, INPUT1, OUTPUT0, OUTPUT1: 64 bytes each
PATH = "/v2/systemsharedmemory"


def fill(server):
    """A fresh region with the inputs; the outputs' part is full of ones."""
    Path("/dev/shm", KEY[1:]).write_bytes(A.tobytes() + B.tobytes() + b"\xff" * 128)


def look(server):
    return np.frombuffer(Path("/dev/shm", KEY[1:]).read_bytes(), np.int32, 32, 128).tolist()


def remove(server):
    Path("/dev/shm", KEY[1:]).unlink()


def check_sum(server):
    expected = [*(A + B)[0].tolist(), *(A - B)[0].tolist()]
    assert look(server) == expected, f"{server.kind} wrote {look(server)} to shared memory"
    return expected


def register(name="region", key=KEY, offset=0, size=SIZE, **fields):
    return Http(f"{PATH}/region/{name}/register", {"key": key, "offset": offset, "byte_size": size}, **fields)


def unregister(name="region", **fields):
    return Http(f"{PATH}/region/{name}/unregister" if name else f"{PATH}/unregister", b"", **fields)


def part(name, number, region="region", size=64, offset=None, shape=(1, 16)):
    parameters = {"shared_memory_region": region, "shared_memory_byte_size": size, "shared_memory_offset": 64 * number if offset is None else offset}
    return {"name": name, "shape": list(shape), "datatype": "INT32", "parameters": parameters}


def output(name, number, **changes):
    tensor = part(name, number, **changes)
    return {"name": name, "parameters": tensor["parameters"]}


INPUTS = [part("INPUT0", 0), part("INPUT1", 1)]
OUTPUTS = [output("OUTPUT0", 2), output("OUTPUT1", 3)]
BEGIN, END = (Local(fill), register()), (unregister(), Local(remove))


def grpc_in_region():
    request = pb.ModelInferRequest(model_name="add_sub")
    for tensor in INPUTS:
        message = request.inputs.add(name=tensor["name"], shape=tensor["shape"], datatype="INT32")
        fill_parameters(message.parameters, tensor["parameters"])
    for tensor in OUTPUTS:
        fill_parameters(request.outputs.add(name=tensor["name"]).parameters, tensor["parameters"])
    return request


def fill_parameters(target, values):
    for key, value in values.items():
        setattr(target[key], "string_param" if isinstance(value, str) else "int64_param", value)


def refused(name, inputs=INPUTS, outputs=OUTPUTS, status=400):
    return case(f"http_shm_{name}", *BEGIN, json_infer("add_sub", inputs, outputs=outputs, status=status), *END)


CASES = [
    case("http_shm_status_none", Http(f"{PATH}/status")),
    case("http_shm_infer", *BEGIN, json_infer("add_sub", INPUTS, outputs=OUTPUTS), Local(check_sum), *END),
    case("http_shm_inputs_only", *BEGIN, json_infer("add_sub", INPUTS, expect={"OUTPUT0": A + B, "OUTPUT1": A - B}), *END),
    case("grpc_shm_infer", *BEGIN, Grpc("ModelInfer", grpc_in_region()), Local(check_sum), *END),
    case("http_shm_status", *BEGIN, Http(f"{PATH}/status"), Http(f"{PATH}/region/region/status"),
         Http(f"{PATH}/region/other/status", status=404), *END),
    case("http_shm_twice", *BEGIN, register(status=400), *END),
    case("http_shm_no_key", register(key="/anymps_test_nothing_here", status=500)),
    case("http_shm_too_large", Local(fill), register(size=1 << 40, status=400), Local(remove)),
    case("http_shm_no_size", Http(f"{PATH}/region/region/register", {"key": KEY}, status=400)),
    case("http_shm_unregister_unknown", unregister("other")),
    case("http_shm_unregister_all", *BEGIN, unregister(""), Http(f"{PATH}/status"), Local(remove)),
    case("grpc_shm_register", Local(fill),
         Grpc("SystemSharedMemoryRegister", pb.SystemSharedMemoryRegisterRequest(name="g", key=KEY, byte_size=128)),
         Grpc("SystemSharedMemoryStatus", pb.SystemSharedMemoryStatusRequest()),
         Grpc("SystemSharedMemoryStatus", pb.SystemSharedMemoryStatusRequest(name="nobody"), code="NOT_FOUND"),
         Grpc("SystemSharedMemoryRegister", pb.SystemSharedMemoryRegisterRequest(name="g", key=KEY, byte_size=64), code="ALREADY_EXISTS"),
         Grpc("SystemSharedMemoryUnregister", pb.SystemSharedMemoryUnregisterRequest(name="g")),
         Grpc("SystemSharedMemoryStatus", pb.SystemSharedMemoryStatusRequest()), Local(remove)),
    refused("unknown_region", [part("INPUT0", 0, region="other"), INPUTS[1]], status=404),
    refused("beyond_the_end", [part("INPUT0", 0, offset=224), INPUTS[1]]),
    refused("far_beyond_the_end", [part("INPUT0", 0, offset=1 << 40), INPUTS[1]]),
    refused("input_too_small", [part("INPUT0", 0, size=60), INPUTS[1]]),
    refused("output_too_small", outputs=[output("OUTPUT0", 2, size=60), OUTPUTS[1]], status=500),
    refused("output_beyond_the_end", outputs=[output("OUTPUT0", 2, offset=252), OUTPUTS[1]]),
]
