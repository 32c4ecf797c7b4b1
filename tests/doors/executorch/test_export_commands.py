# SPDX-License-Identifier: Apache-2.0
"""The two commands: upstream's example script, and export-pte for any module."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("executorch.backends.apple.mps", reason="needs .venvs/executorch: scripts/env executorch")

from conftest import DOOR  # noqa: E402
from door import ROOT, RUNNER  # noqa: E402

from anymps_executorch import export_pte, mps_example  # noqa: E402

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        return torch.cumsum(torch.relu(self.linear(x)), 1)

def factory():
    return Net(), (torch.ones(2, 4),)

def wrong():
    return "net"
"""


TWO_DELEGATES = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        return torch.softmax(torch.cumsum(self.linear(x), 1), 1)

def factory():
    return Net(), (torch.ones(2, 4),)
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "given_model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("given_model", None)
    return tmp_path


def test_export_pte(model, capsys):
    assert export_pte.main(["given_model:factory", "-o", "net.pte", "--fp32", "--report", "net.json"]) == 0
    said = capsys.readouterr().out
    assert "1 delegate" in said and "outside: aten.cumsum.default x1: the MPS schema has no such node" in said
    assert "greatest difference from the module: 0" in said
    assert (model / "net.pte").read_bytes()[4:8] == b"ET12"
    report = json.loads((model / "net.json").read_text())
    assert report["methods"]["forward"]["delegates"][0]["MPSAddmm"] == 1
    assert report["methods"]["forward"]["outside"]["aten.cumsum.default"]["count"] == 1


def test_shapes_bundles_and_segments(model):
    arguments = ["given_model.py:Net", "--inputs", "3x4:f32", "--dynamic", "x.0=batch:1..8", "--bundled", "--segments"]
    assert export_pte.main([*arguments, "-o", "net.pte"]) == 0
    data = (model / "net.pte").read_bytes()
    assert data[4:8] == b"BP08" and b"eh00" in data


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["given_model"], "not MODULE:FACTORY"),
        (["nowhere:factory"], "no module nowhere"),
        (["given_model:nothing"], "has no nothing"),
        (["given_model:wrong"], "must give a torch.nn.Module"),
        (["given_model:Net"], "--inputs"),
        (["given_model:Net", "--inputs", "3by4"], "no shape:dtype"),
        (["given_model:Net", "--inputs", "3x4", "--dynamic", "0.7=n:1..2"], "no input 0 with an axis 7"),
        (["missing.py:Net"], "no file missing.py"),
    ],
)
def test_what_is_wrong_is_said(model, capsys, arguments, message):
    assert export_pte.main(arguments) == 2
    assert message in capsys.readouterr().err


def test_seeded_inputs():
    import torch

    assert export_pte.make_input("2x3:i64<5").max() < 5
    assert export_pte.make_input(":f16").dtype == torch.float16 and export_pte.make_input(":f16").dim() == 0


def test_example_script(tmp_path, capsys):
    mps_example.main(["-m", "linear", "--bundled", "-c", "--output_dir", str(tmp_path)])
    said = capsys.readouterr().out
    assert "linear: weights as the example makes them" in said and "greatest difference" in said
    names = ("linear_mps_float16_bundled.pte", "linear_mps_bundled.pte")
    first, second = ((tmp_path / name).read_bytes() for name in names)
    assert first == second and first[4:8] == b"BP08"


def test_example_script_float32_without_bundle(tmp_path):
    mps_example.main(["--model_name=add", "--no-use_fp16", "--generate_etrecord", "--output_dir", str(tmp_path)])
    assert (tmp_path / "add_mps_float32.pte").read_bytes()[4:8] == b"ET12"
    assert (tmp_path / "etrecord.bin").stat().st_size > 0


@pytest.mark.skipif(not RUNNER.exists(), reason="build/bin/mps_executor_runner is not built")
def test_an_etrecord_links_a_profile_with_the_module(model, capsys):
    """Two delegates with an operator between them: each kernel leads back to the op of the module that it computes."""
    from executorch.devtools import Inspector

    (model / "two.py").write_text(TWO_DELEGATES)
    assert export_pte.main(["two.py:factory", "-o", "two.pte", "--fp32", "--bundled", "--etrecord", "two.bin"]) == 0
    assert "in 2 delegates" in capsys.readouterr().out
    files = ["--etdump_path", "two.etdp", "--debug_output_path", "two.debug"]
    flags = ["--model_path", "two.pte", "--bundled_program", "--dump_intermediate_outputs", *files]
    subprocess.run([RUNNER, *flags], check=True, capture_output=True)
    found = Inspector(etdump_path="two.etdp", etrecord="two.bin", debug_buffer_path="two.debug")
    blocks = [block for block in found.event_blocks if block.name == "Execute"]
    linked = {name: set(event.op_types) for event in blocks[0].events if event.debug_handles for name in [event.name]}
    kinds = set().union(*linked.values())
    assert {"aten.addmm.default", "aten.cumsum.default", "aten._softmax.default"} <= kinds, linked
    assert linked["native_call_cumsum.out"] == {"aten.cumsum.default"}
    delegated = [event for event in blocks[0].events if event.is_delegated_op]
    assert delegated and all(event.debug_handles and event.delegate_backend_name == "MPSBackend" for event in delegated)
    assert all(any("two.py" in trace for trace in event.stack_traces.values()) for event in delegated)
    # What each node computed is linked, too, even where it is an output of the program.
    recorded = {event.name: event for block in blocks for event in block.events if event.debug_data}
    assert all(event.debug_handles for event in recorded.values()), list(recorded)
    assert "aten.addmm.default" in recorded["delegate0/addmm_1"].op_types
    assert recorded["delegate1/softmax_0"].op_types == ["aten._softmax.default"]
    assert [tuple(value.shape) for value in recorded["delegate1/softmax_0"].debug_data] == [(2, 3)]


def test_example_script_says_what_it_lacks(tmp_path):
    with pytest.raises(SystemExit, match="no example model is called"):
        mps_example.main(["-m", "nothing", "--output_dir", str(tmp_path)])


def test_seeded_weights_are_told():
    from anymps_executorch import models

    made = models.example("mv2")
    assert any("no pretrained weights" in note for note in made.notes) or any("as the example" in n for n in made.notes)
    assert any("batch norms calibrated" in note for note in made.notes)
    assert float(made.module(*made.inputs).std()) > 0.1


@pytest.mark.parametrize("folder", [DOOR, ROOT], ids=["door", "root"])
def test_python_without_executorch(folder, tmp_path):
    """It starts anew with the environment's Python, or names the command that makes it; from both folders, although the
    root has examples of its own."""
    base = os.path.realpath(sys.base_prefix + "/bin/python3")
    command = [base, "-m", "examples.apple.mps.scripts.mps_example", "--model_name=add", f"--output_dir={tmp_path}"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["ANYMPS_VENV_DIR"] = os.path.dirname(sys.prefix)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "add_mps_float16.pte").exists()
    environment["ANYMPS_VENV_DIR"] = str(tmp_path)
    failed = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert failed.returncode == 1 and "scripts/env executorch" in failed.stderr
