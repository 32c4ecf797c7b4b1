# SPDX-License-Identifier: Apache-2.0
"""scripts/bench replay: the recordings, and every call of the tiny ones against torch."""
import gzip
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "replay"))

import run_replay  # noqa: E402

TORCH = ROOT / ".venvs" / "torch" / "bin" / "python"
REPLAY = ROOT / "build" / "bench" / "eager" / "libreplay.so"
VERIFY = """
import run_replay
lib = run_replay.load({library!r}, {replay!r}, 2)
for model in ("tiny_resnet", "tiny_transformer"):
    replay = run_replay.Replay(lib, model)
    replay.verify()
    assert replay.report() is not None
    slow = run_replay.reference_calls(replay.report())
    assert not slow, slow
    times = replay.run(0, "anymps")
    assert sum(times) > 0 and len(times) == len(replay.runs[0])
"""


@pytest.mark.parametrize("model", [*run_replay.MODELS, "tiny_resnet", "tiny_transformer"])
def test_recording_is_whole(model):
    lines = [line.split() for line in gzip.decompress((run_replay.DATA / f"{model}.txt.gz").read_bytes()).decode().splitlines()]
    storages = tensors = 0
    for line in lines:
        if line[0] == "storage":
            storages += 1
        elif line[0] == "tensor":
            assert int(line[1]) < storages
            tensors += 1
        elif line[0] == "call":
            assert all(int(word[1:]) < tensors for word in line[2:] if word[0] == "t" and word[1:].isdigit())
    assert [line[1] for line in lines if line[0] == "phase"] == ["forward", "backward", "optimizer", "inference"]


def test_recordings_are_small():
    assert sum(file.stat().st_size for file in run_replay.DATA.iterdir()) < 300_000


@pytest.mark.skipif(not TORCH.exists() or not REPLAY.exists(), reason="build/bench/eager is not built (scripts/bench replay)")
def test_calls_agree_with_torch_and_none_is_slow():
    code = VERIFY.format(library=str(ROOT / "build/lib/libanymps.so"), replay=str(REPLAY))
    done = subprocess.run([TORCH, "-c", code], cwd=ROOT / "bench" / "replay", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_table_compares_phases_and_names_the_slow():
    row = {"model": "m", "threads": 1, "phase": "forward", "min_ms": 1.0}
    rows = [{**row, "runtime": "anymps", "median_ms": 2.0}, {**row, "runtime": "torch", "median_ms": 3.0}]
    ops = [{**r, "op": "relu", "calls": 4} for r in rows]
    text = run_replay.table({"machine": {"cpu": "c"}, "rows": rows, "ops": ops, "reference": {"m: relu": 4}})
    assert "| m | 1 | forward | 2.00 (1.00) | 3.00 (1.00) | 1.50 |" in text
    assert "| m | forward | relu | 4 | 2.00 | 3.00 | 1.50 |" in text
    assert "m: relu 4" in text
