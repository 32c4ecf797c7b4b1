# SPDX-License-Identifier: Apache-2.0
"""Runs programs in the stock ExecuTorch runtime of this Python, with our delegate; test_delegate.py starts it.

    stock_python.py LIBRARY FOLDER < jobs

FOLDER is where anymps_executorch lies. A job is a line of JSON: {"name", "program", "method", "inputs", "expected",
"orders", "tolerance", "runs", "etdump"}, with .npy files. Each is answered by a line: {"name", "error"}.
"""
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, sys.argv[2])

from anymps_executorch import backend  # noqa: E402

lib = backend.register(sys.argv[1])
backend.register(sys.argv[1])
assert lib._get_registered_backend_names().count("MPSBackend") == 1

import torch  # noqa: E402
from executorch.runtime import Runtime  # noqa: E402


def tensor(path, order):
    """The file's elements, in memory in the order of axes that the program wants."""
    ordered = torch.from_numpy(np.load(path)).permute(order).contiguous()
    return ordered.permute(np.argsort(order).tolist())


def run(job):
    program = Runtime.get().load_program(Path(job["program"]), enable_etdump=bool(job.get("etdump")))
    method = program.load_method(job["method"])
    for _ in range(job["runs"]):
        outputs = method.execute([tensor(path, order) for path, order in zip(job["inputs"], job["orders"])])
        assert len(outputs) == len(job["expected"])
        for got, path in zip(outputs, job["expected"]):
            expected = np.load(path)
            assert got.numpy().dtype == expected.dtype
            np.testing.assert_allclose(got.numpy(), expected, rtol=job["tolerance"], atol=job["tolerance"])
    if job.get("etdump"):
        program.write_etdump_result_to_file(job["etdump"], job["etdump"] + ".bin")


for line in sys.stdin:
    job, error = json.loads(line), None
    try:
        run(job)
    except Exception as problem:  # every failure is an answer
        error = f"{type(problem).__name__}: {problem}"
    print(json.dumps({"name": job["name"], "error": error}), flush=True)
