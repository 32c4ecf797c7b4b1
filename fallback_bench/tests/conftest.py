# SPDX-License-Identifier: Apache-2.0
"""The tests run the scripts as people do, in a copy of the folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from stand_in import GitHub, comment

ROOT = Path(__file__).resolve().parents[1]
OWN_FILES = ("README.md", "pyproject.toml", "bench", "metrics", "report", "scripts")

COMMENTS = {
    77764: [
        comment(1, "The operator 'aten::isin.Tensor_Tensor_out' is not currently implemented for the MPS device.", plus=7, heart=2),
        comment(2, "+1 for `aten::isin.Tensor_Tensor_out`, my input is torch.Size([4, 256]) in torch.float32 and int64"),
        comment(3, "> aten::isin is missing\n\nand aten::angle too", confused=3),
        comment(4, "we count aten::isin", kind="Bot"),
        comment(5, "please add torch.linalg.qr, and `not_an_op_at_all`, e.g. of torch.randn(32, 32)"),
    ],
    141287: [comment(6, "aten::index_copy.out with shape=(64, 32), half", issue=141287, rocket=1)],
}


@pytest.fixture
def github():
    server = GitHub(COMMENTS)
    yield server
    server.close()


@pytest.fixture
def folder(tmp_path):
    """A copy of the tool, without what was made with it."""
    for name in OWN_FILES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "summary*"))
        else:
            shutil.copy(source, tmp_path / name)
    (tmp_path / "ops").mkdir()
    shutil.copy(ROOT / "ops" / "targets.seed.yaml", tmp_path / "ops")
    return tmp_path


@pytest.fixture
def run(folder):
    """Runs a command line in the folder; `python` is this one."""

    def start(command, ok=True, **env):
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        whole = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "ANYMPS_NUM_THREADS": "1", **env}
        whole.pop("GH_TOKEN", None) if "GH_TOKEN" not in env else None
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=whole, capture_output=True, text=True, timeout=300)
        assert (done.returncode == 0) == ok, done.stdout + done.stderr
        return done.stdout + done.stderr

    return start
