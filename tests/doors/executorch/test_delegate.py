# SPDX-License-Identifier: Apache-2.0
"""The delegate MPSBackend in stock ExecuTorch runtimes: 1.5.1 from C++ and from Python, 1.4.1 from Python."""
import json
import subprocess
import sys

import numpy as np
import pytest
from door import (BACKEND, BUNDLES, EXPORTER_PYTHON, ROOT, RUNTIME_PYTHON, STOCK_WORKER, WITH_STATE, Bundle, has_package, small_bundles,
                  tolerance)

sys.path.insert(0, str(ROOT / "bench" / "models"))
from worker import Worker, WorkerError  # noqa: E402

pytestmark = pytest.mark.skipif(not BACKEND.exists(), reason="the delegate is not built: scripts/env executorch-runtime")
CONV = BUNDLES / "kinds" / "MPSConv2D_f32.pte"
needs_worker = pytest.mark.skipif(not STOCK_WORKER.exists(), reason="build/bin/executorch_stock_worker is not built")


def delegated_bundles():
    """Those that use the delegate, and beside it only operators that the wheel has kernels for."""
    return [path for path in small_bundles()
            if b"MPSBackend" in (data := path.read_bytes()) and b"aten::sort" not in data]


def run_jobs(python, jobs):
    """{name: error or None}, and the log."""
    done = subprocess.run([python, "-W", "ignore", ROOT / "tests/doors/executorch/stock_python.py", BACKEND, ROOT / "doors/executorch"],
                          input="".join(json.dumps(job) + "\n" for job in jobs), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"')]
    assert len(answers) == len(jobs), done.stderr[-4000:]
    return {answer["name"]: answer["error"] for answer in answers}, done.stderr


def jobs_of(bundle, folder, **more):
    """A job for each test case of a bundle that has tensors alone."""
    found, jobs = Bundle(bundle), []
    for method, cases in found.cases.items():
        for number, (inputs, expected) in enumerate(cases):
            if any(value is None for value in inputs + expected):
                continue
            name = f"{bundle.stem}.{method}.{number}"
            (folder / f"{bundle.stem}.pte").write_bytes(found.program)
            files = {}
            for side, values in (("inputs", inputs), ("expected", expected)):
                files[side] = [str(folder / f"{name}.{side}{i}.npy") for i in range(len(values))]
                for path, value in zip(files[side], values):
                    np.save(path, value)
            orders = [np.argsort([-stride for stride in value.strides], kind="stable").tolist() for value in inputs]
            jobs.append({"name": name, "orders": orders, "program": str(folder / f"{bundle.stem}.pte"), "method": method,
                         "tolerance": tolerance(bundle), "runs": 1 if bundle.stem in WITH_STATE else 3, **files, **more})
    return jobs


@pytest.mark.parametrize("python", [RUNTIME_PYTHON, EXPORTER_PYTHON], ids=["1.5.1", "1.4.1"])
def test_bundles_in_the_python_runtime(python, tmp_path):
    if not has_package(python):
        pytest.skip(f"scripts/env {python.parents[1].name} makes the environment")
    jobs = [job for bundle in delegated_bundles() for job in jobs_of(bundle, tmp_path)]
    errors, log = run_jobs(python, jobs)
    assert len(errors) > 150
    failed = {name: error for name, error in errors.items() if error}
    assert not failed, f"{failed}\n{log[-4000:]}"


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    log = tmp_path_factory.mktemp("stock") / "log"
    with Worker("executorch", log, [STOCK_WORKER, BACKEND]) as worker:
        yield worker


@needs_worker
@pytest.mark.parametrize("bundle", delegated_bundles(), ids=lambda p: p.stem)
def test_bundles_in_a_cpp_program(bundle, stock, tmp_path):
    found = Bundle(bundle)
    if "forward" not in found.cases:
        pytest.skip("the worker runs the method forward")
    inputs, expected = found.cases["forward"][0]
    if any(value is None for value in inputs + expected):
        pytest.skip("the worker takes tensors alone")
    if not all(value.flags.c_contiguous for value in inputs):
        pytest.skip("the worker's inputs are row-major")
    (tmp_path / "plain.pte").write_bytes(found.program)
    stock.ask("forget")
    for i, value in enumerate(inputs):
        np.save(tmp_path / f"{i}.npy", value)
        stock.ask(f"input {i} {tmp_path / f'{i}.npy'}")
    for run in range(3):
        if run == 0 or bundle.stem in WITH_STATE:
            stock.ask(f"load {tmp_path / 'plain.pte'} 2")
        stock.run(1)
        stock.ask(f"output {tmp_path}")
        for i, value in enumerate(expected):
            got = np.load(tmp_path / f"output{i}.npy")
            assert got.dtype == value.dtype
            np.testing.assert_allclose(got, value, rtol=tolerance(bundle), atol=tolerance(bundle))


@needs_worker
def test_it_is_registered_beside_the_wheels_own_backends(stock):
    backends = stock.ask("backends")["backends"]
    assert backends.count("MPSBackend") == 1 and "XnnpackBackend" in backends


@needs_worker
def test_errors_are_codes_and_logged_messages(tmp_path):
    program = bytearray(Bundle(CONV).program)
    at = program.find(b"MP00")
    assert at > 0 and program.count(b"MP00") == 2  # of the header, and of the FlatBuffer behind it
    program[at + 4:at + 12] = (2**40).to_bytes(8, "little")  # where the constants lie
    (tmp_path / "bad.pte").write_bytes(program)
    with Worker("executorch", tmp_path / "log", [STOCK_WORKER, BACKEND]) as worker:
        with pytest.raises(WorkerError, match="Error::InvalidProgram"):
            worker.ask(f"load {tmp_path / 'bad.pte'} 1")
    assert "[MPSBackend]" in (tmp_path / "log").read_text()


@needs_worker
def test_the_program_says_so_when_it_lacks_the_delegate(tmp_path):
    (tmp_path / "plain.pte").write_bytes(Bundle(CONV).program)
    with Worker("executorch", tmp_path / "log", [STOCK_WORKER]) as worker:
        assert "MPSBackend" not in worker.ask("backends")["backends"]
        with pytest.raises(WorkerError, match="Error::"):
            worker.ask(f"load {tmp_path / 'plain.pte'} 1")


def test_loading_it_without_a_runtime_tells_what_is_missing():
    code = f"import ctypes, sys; sys.exit(ctypes.CDLL({str(BACKEND)!r}).anymps_executorch_register())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "no ExecuTorch runtime in this process" in done.stderr


@pytest.mark.skipif(not has_package(RUNTIME_PYTHON), reason="scripts/env executorch-runtime makes the environment")
def test_an_event_tracer_gets_an_event_for_each_op(tmp_path):
    errors, log = run_jobs(RUNTIME_PYTHON, jobs_of(CONV, tmp_path, etdump=str(tmp_path / "d.etdp")))
    assert list(errors.values()) == [None], f"{errors} {log}"
    data = (tmp_path / "d.etdp").read_bytes()
    assert data[8:12] == b"ED00" and b"DELEGATE_CALL" in data
    assert b"conv2d" in data  # metadata of the delegate's event
