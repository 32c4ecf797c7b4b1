# SPDX-License-Identifier: Apache-2.0
"""metrics/mps_utilization.py on programs of which it is known what falls back."""

import json

PROGRAM = """
import sys
import torch
print("arguments", sys.argv[1:])
x = torch.ones(8, 8).to("mps")  # a copy
for _ in range(3):
    x = x * 2
    torch.mode(x)
x.view(64)
sys.exit(int(sys.argv[1]))
"""


def test_any_program(run, folder):
    (folder / "train.py").write_text(PROGRAM)
    command = "python metrics/mps_utilization.py --json used.json -- python train.py"
    said = run(f"{command} 0 --more")
    assert "arguments ['0', '--more']" in said
    made = json.loads((folder / "used.json").read_text())
    assert made["calls"] == 7 and made["fell_back"] == 3 and abs(made["fallback_percent_calls"] - 300 / 7) < 1e-6
    assert list(made["ops"]) == ["aten.mode.default"] and 0 < made["fallback_percent_time"] < 100
    assert "42.9 %" in said and "aten.mode.default" in said
    run(f"{command} 3", ok=False)  # its status is ours
    assert "say what to run" in run("python metrics/mps_utilization.py -- train.py", ok=False)


def test_all_kernels_of_the_door(run, folder):
    (folder / "train.py").write_text(PROGRAM)
    run("python metrics/mps_utilization.py --json used.json -- python train.py 0", ANYMPS_STRICT_MPS="0")
    assert json.loads((folder / "used.json").read_text())["fell_back"] == 0
