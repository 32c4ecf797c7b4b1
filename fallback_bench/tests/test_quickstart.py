# SPDX-License-Identifier: Apache-2.0
"""The commands at the top of the README, as they are written there, in a new shell and a new virtual environment.

Only what surrounds them is the test's: what pip would download is found where it is installed already, GitHub is a stand-in,
and the list of ops is cut to a few."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml


def commands(readme):
    return re.search(r"```bash\n(.*?)```", readme, re.S)[1]


def test_the_quickstart(folder, github):
    script = commands((folder / "README.md").read_text(encoding="utf-8"))
    for command in ("pip install -e .", "python scripts/sync_requests.py --issues 77764 141287 --out ops/targets.yaml", "cp ops/targets.seed.yaml ops/targets.yaml",
                    "bash scripts/bench_all.sh", "python report/aggregate.py --results_dir results --out report/summary.md",
                    "python metrics/mps_utilization.py"):  # fmt: skip
        assert f"\n{command}\n" in script, command
    seed = yaml.safe_load((folder / "ops" / "targets.seed.yaml").read_text())
    seed["ops"] = [{**entry, "shapes": [[256, 4]], "dtypes": ["float32"]} for entry in seed["ops"][:2]]
    (folder / "ops" / "targets.seed.yaml").write_text(yaml.safe_dump(seed))
    script = script.replace("cp ops/targets.seed.yaml", "cp ops/targets.yaml synced.yaml\ncp ops/targets.seed.yaml")
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), *(p for p in sys.path if p.endswith("site-packages"))])),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # which means: none
        "GITHUB_API_URL": github.url,
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert yaml.safe_load((folder / "synced.yaml").read_text())["ops"][0]["op"] == "isin"
    made = json.loads((folder / "report" / "summary.json").read_text())
    assert {row["op"] for row in made["top"]} == {"isin", "index_copy"} and not made["problems"]
    assert all(row["penalty"] > 0 and row["worth"] > 0 for row in made["top"])
    assert "Top Pain" in (folder / "report" / "summary.md").read_text() and (folder / "results" / "isin.csv").exists()
    assert re.search(r"fell back +[1-9]\d* +[\d.]+ %", done.stdout), done.stdout
