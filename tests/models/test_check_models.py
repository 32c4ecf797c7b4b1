# SPDX-License-Identifier: Apache-2.0
"""models/check_models.py: every node of the models that scripts make, beside the reference.

A quick sample runs always; with ANYMPS_FULL_TESTS=1 (`scripts/test --full`) all of them do. Those out of wheels are in
test_wheel_models.py.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "models"), str(ROOT / "build" / "python")]

import check_models  # noqa: E402

SAMPLE = ["kind_words", "kind_speech", "mobilenet_v2_f16", "mobilenet_v2_bf16", "mobilenet_v2_qdq", "lstm_dynamic"]
NAMES = list(check_models.SCRIPTS) if os.environ.get("ANYMPS_FULL_TESTS") == "1" else SAMPLE


@pytest.mark.parametrize("isa", ["best", "avx2"])
@pytest.mark.parametrize("name", NAMES)
def test_every_node_agrees_with_the_reference(name, isa):
    count, furthest, wrong = check_models.check(name, environment={} if isa == "best" else {"ANYMPS_ISA": isa})
    assert not wrong
    assert count > 2 and float(furthest["share"]) <= 1


def run(*arguments, **environment):
    command = [sys.executable, ROOT / "models" / "check_models.py", *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, **environment})


def test_a_line_for_each_model():
    done = run("kind_words", "--isa", "best,avx2")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"""instruction set: best
 nodes  furthest  seconds  model
 +\d+ +\S+ +\S+  kind_words  \w+ cpu:.+
instruction set: avx2
 nodes  furthest  seconds  model
 +\d+ +\S+ +\S+  kind_words  \w+ cpu:.+
2 models, \d+ nodes, \d+ s; furthest \S+ of what is allowed: \w+ cpu:.+ of kind_words
""", done.stdout), done.stdout


def test_a_model_that_differs_is_named():
    done = run("kind_words", ANYMPS_CHECK_RTOL="1e-12")
    assert done.returncode == 1 and "1 differ: kind_words (best)" in done.stderr
    assert re.search(r"Mismatch: .* differs from reference: output 'y' at", done.stdout), done.stdout


def test_names_that_are_none():
    assert run("--list", "kind_").stdout.split() == [f"kind_{kind}" for kind in ("words", "speech", "clip", "decoder", "picture")]
    assert "no model with nothing_like_it in its name" in run("nothing_like_it").stderr
