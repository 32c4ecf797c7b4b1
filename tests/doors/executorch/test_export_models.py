# SPDX-License-Identifier: Apache-2.0
"""Example models, exported and verified by the runner over three runs; all of them with ANYMPS_FULL_TESTS=1.

What was exported before is taken from .models/executorch (ANYMPS_EXECUTORCH_MODELS): make_bundles.py models fills it.
"""

import os
import pathlib

import pytest

pytest.importorskip("executorch.backends.apple.mps", reason="needs .venvs/executorch: scripts/env executorch")

from anymps_executorch import runner  # noqa: E402
from anymps_executorch.bundles import making  # noqa: E402
from anymps_executorch.environment import ROOT  # noqa: E402

KEPT = pathlib.Path(os.environ.get("ANYMPS_EXECUTORCH_MODELS", ROOT / ".models" / "executorch"))
JOBS = dict(making.models_jobs())
QUICK = [
    "mul_f32",
    "linear_f16",
    "add_f32",
    "add_mul_f16",
    "softmax_f32",
    "conv1d_f16",
    "sdpa_f32",
    "lstm_f32",
    "ds_cnn_f16",
]
NAMES = [n.removesuffix(".pte") for n in JOBS] if os.environ.get("ANYMPS_FULL_TESTS") else QUICK


def test_there_are_twenty_in_float32():
    assert sum(name.endswith("_f32.pte") for name in JOBS) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_verified_by_the_runner(name, tmp_path):
    path = KEPT / f"{name}.pte"
    if name in QUICK or not path.exists():
        path = tmp_path / f"{name}.pte"
        path.write_bytes(JOBS[path.name]().data)
    tolerance = 2e-2 if name.startswith("sdpa") else None  # computes in bfloat16
    if (verified := runner.verifies(path, 3, tolerance)) is None:
        pytest.skip(f"{runner.NAME} is not built")
    assert verified[0], verified[1]
