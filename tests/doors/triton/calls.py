# SPDX-License-Identifier: Apache-2.0
"""Short forms of tritonclient's calls: one function for both protocols."""
import contextlib
import json
import threading
import time

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

PROTOCOLS = ("http", "grpc")


def client(server, protocol="http", concurrency=1):
    if protocol == "http":
        return http_client.InferenceServerClient(server.http, concurrency=concurrency)
    return grpc_client.InferenceServerClient(server.grpc)


def tensor(protocol, name, array, datatype=None):
    module = http_client if protocol == "http" else grpc_client
    made = module.InferInput(name, list(array.shape), datatype or np_to_triton_dtype(array.dtype))
    made.set_data_from_numpy(array)
    return made


def infer(server, model, protocol="http", outputs=None, version="", using=None, datatypes=None, headers=None, **arrays):
    """Answers as a dict of arrays. A client of its own is closed at once: Triton waits for connections when it ends."""
    module = http_client if protocol == "http" else grpc_client
    inputs = [tensor(protocol, n, a, (datatypes or {}).get(n)) for n, a in arrays.items()]
    asked = [module.InferRequestedOutput(o) for o in outputs] if outputs else None
    with contextlib.nullcontext(using) if using else contextlib.closing(client(server, protocol)) as one:
        answer = one.infer(model, inputs, outputs=asked, model_version=version, headers=headers)
    names = [o["name"] for o in answer.get_response()["outputs"]] if protocol == "http" else [o.name for o in answer.get_response().outputs]
    return {name: answer.as_numpy(name) for name in names}


def together(count, call):
    """Calls call(i) on threads that start at once; the results in order, exceptions among them."""
    results, gate = [None] * count, threading.Barrier(count)

    def run(i):
        gate.wait()
        try:
            results[i] = call(i)
        except Exception as error:  # noqa: BLE001 - the caller looks at it
            results[i] = error
    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def config(server, model):
    return json.loads(server.get(f"/v2/models/{model}/config")[1])


def statistics(server, model, rows=0):
    """Batches are counted after their answers are sent: waits until so many rows are in them."""
    for _ in range(500):
        found = json.loads(server.get(f"/v2/models/{model}/stats")[1])["model_stats"][0]
        if sum(b["batch_size"] * b["compute_infer"]["count"] for b in found.get("batch_stats", [])) >= rows:
            break
        time.sleep(0.01)
    return found


def unregister(using, region):
    """Tritonserver sends an answer first and frees its shared memory a moment later, whatever the backend does."""
    end = time.monotonic() + 10
    while True:
        try:
            return using.unregister_system_shared_memory(region)
        except InferenceServerException as error:
            if "it is currently in use" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def why_not(server, model):
    """The reason in the repository index why a model is not there."""
    for entry in client(server).get_model_repository_index():
        if entry["name"] == model:
            return entry.get("reason", "")
    return f"{model} is not in the index"


def floats(*shape):
    return (np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) % 7) - 3
