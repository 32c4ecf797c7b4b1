# SPDX-License-Identifier: Apache-2.0
"""examples/ray_batch_inference.py with a Ray that it starts itself: all rows, in order, from several workers, even when one
is killed. Needs environment `ray`; scripts/test --full runs it."""
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "examples" / "ray_batch_inference.py"
MODEL = ROOT / "examples" / "models" / "softmax.onnx"
PACKAGES = {**os.environ, "PYTHONPATH": str(ROOT / "build" / "python"), "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def run(folder, *args):
    return subprocess.run([sys.executable, PROGRAM, *args], cwd=folder, env=PACKAGES, capture_output=True, text=True, timeout=240)


def test_all_rows_in_order(tmp_path):
    rows = np.random.default_rng(1).standard_normal((1003, 4)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    done = run(tmp_path, MODEL, "rows.npy", "--workers", "2", "--batch", "50", "--out", "y.npy")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), softmax(rows), rtol=1e-5)
    assert "1003 rows" in done.stdout and "on 2 workers" in done.stdout
    assert done.stderr.strip().splitlines()[-1].startswith("100%  1003/1003 rows")


def test_no_rows_is_said(tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((0, 4), np.float32))
    done = run(tmp_path, MODEL, "rows.npy")
    assert done.returncode != 0 and "has no rows" in done.stderr


def test_a_lost_worker_loses_no_rows(capsys):
    import ray

    spec = importlib.util.spec_from_file_location("ray_batch_inference", PROGRAM)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)

    class Slow(example.Model):
        def run(self, rows, first, last):
            time.sleep(0.05)
            return super().run(rows, first, last)

    example.Model = Slow
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error",
             runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join([str(ROOT / "build" / "python"), str(ROOT / "examples")])}})
    try:
        rows = np.random.default_rng(2).standard_normal((400, 4)).astype(np.float32)
        started = []
        start = example.Pool.start
        example.Pool.start = lambda self: started.append(start(self)) or started[-1]

        def kill():
            while len(started) < 2:
                time.sleep(0.01)
            victim = ray.get(started[0].pid.remote())
            time.sleep(0.3)
            os.kill(victim, signal.SIGKILL)
        thread = threading.Thread(target=kill)
        thread.start()
        results = example.infer(MODEL.read_bytes(), rows, 2, 1, 10)
        thread.join()
        np.testing.assert_allclose(results, softmax(rows), rtol=1e-5)
        assert len(started) == 3, "the lost worker was not replaced"
        assert "are run again" in capsys.readouterr().err
    finally:
        ray.shutdown()
