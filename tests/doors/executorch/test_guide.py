# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/guides/executorch.md, as they are written there: those that are quick are run."""
import os
import re
import shutil
import subprocess

import pytest
from door import BUNDLES, EXPORTER_PYTHON, ROOT, RUNNER, VENVS, has_package

GUIDE = (ROOT / "docs" / "guides" / "executorch.md").read_text()
ANYMPS = ROOT / "build" / "bin" / "anymps"
pytestmark = pytest.mark.skipif(not RUNNER.exists() or not ANYMPS.exists(), reason="the programs are not built")
needs_exporter = pytest.mark.skipif(not has_package(EXPORTER_PYTHON), reason="scripts/env executorch makes the environment")

MODULE = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 2, 3)

    def forward(self, x):
        return self.conv(x)

def factory():
    return Net(), (torch.ones(1, 3, 8, 8),)
"""


def commands():
    """The lines of all blocks of shell commands."""
    blocks = re.findall(r"```bash\n(.*?)```", GUIDE, re.S)
    return [line.split("#")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


@pytest.fixture
def place(tmp_path):
    """A folder like the root, with a small program under the name of the guide's."""
    (tmp_path / "build").symlink_to(ROOT / "build")
    shutil.copy(BUNDLES / "kinds" / "MPSConv2D_f16.pte", tmp_path / "mv2_mps_bundled.pte")
    for name in ("my_module.py", "net.py"):
        (tmp_path / name).write_text(MODULE)
    return tmp_path


def run(command, place):
    environment = {**os.environ, "PATH": f"{ANYMPS.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-ec", command], cwd=place, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith(("build/bin/mps_executor_runner", "anymps inspect"))])
def test_quick_commands(command, place):
    assert run(command, place)


@needs_exporter
@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("anymps export-pte")])
def test_exports(command, place):
    assert "greatest difference from the module" in run(command, place)


def test_the_guide_has_these_commands():
    starts = ("scripts/env", "python3 -m examples.apple.mps", "anymps export-pte", "anymps inspect", "build/bin/mps_executor_runner",
              "cmake --build build --target anymps_executorch_backend", "cd doors/executorch")
    for start in starts:
        assert any(command.startswith(start) for command in commands()), start
    for path in re.findall(r"`((?:tests|doors|scripts)/[\w/.]+)`", GUIDE):
        assert (ROOT / path).exists(), path


@pytest.mark.skipif(not has_package(VENVS / "executorch-runtime" / "bin" / "python"), reason="scripts/env executorch-runtime makes it")
def test_a_build_finds_an_environment_that_was_made_after_it_was_configured(tmp_path):
    """The guide installs the wheel and then builds the delegate, without configuring again."""
    (tmp_path / "venvs").mkdir()
    environment = {**os.environ, "ANYMPS_VENV_DIR": str(tmp_path / "venvs")}
    configure = ["cmake", "-G", "Ninja", "-B", tmp_path / "out", "-S", ROOT / "doors" / "executorch"]
    made = subprocess.run(configure, env=environment, capture_output=True, text=True, timeout=300)
    if made.returncode != 0 and "AnyMPS: built here" in made.stdout:
        pytest.skip("the engine is not built")
    assert made.returncode == 0, made.stderr
    rules = tmp_path / "out" / "build.ninja"
    assert "anymps_executorch_backend" not in rules.read_text()
    (tmp_path / "venvs" / "executorch-runtime").symlink_to(VENVS / "executorch-runtime")
    # A target that there is not: what is looked at is that the rules were made anew before it is looked for.
    subprocess.run(["cmake", "--build", tmp_path / "out", "--target", "nothing"], env=environment, capture_output=True, timeout=300)
    assert "anymps_executorch_backend" in rules.read_text()
