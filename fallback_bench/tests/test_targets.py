# SPDX-License-Identifier: Apache-2.0
"""The list of ops: what is right is read, and what is wrong is told with its line."""

from pathlib import Path

import pytest
from mps_fallback_bench import targets

SEED = Path(__file__).resolve().parents[1] / "ops" / "targets.seed.yaml"


def load(tmp_path, text):
    path = tmp_path / "targets.yaml"
    path.write_text(text)
    return targets.load(path)


def test_the_seed_list():
    found, problems = targets.load(SEED)
    assert not problems and len(found) > 40
    assert [(t.op, t.demand) for t in found[:2]] == [("isin", 224), ("index_copy", 57)]
    assert all(t.links for t in found if t.demand > 1)


def test_a_name_is_enough(tmp_path):
    (one, two), problems = load(tmp_path, "ops:\n  - trace\n  - {op: isin, dtypes: [int64]}\n")
    assert not problems and one == targets.Target("trace") and two.dtypes == ["int64"]


@pytest.mark.parametrize("entry, told", [
    ("{op: isin, demnd: 3}", "unknown field 'demnd'"),
    ("{op: isin, demand: many}", "'demand' must be a whole number"),
    ("{op: isin, demand: -1}", "'demand' must be a whole number"),
    ("{op: isin, demand: true}", "'demand' must be a whole number"),
    ("{op: isin, shapes: [4, 4]}", "'shapes' must be a list of shapes"),
    ("{op: isin, shapes: [[4, -4]]}", "'shapes' must be a list of shapes"),
    ("{op: isin, shapes: [[65536, 65536]]}", "'shapes' must be a list of shapes"),
    ("{op: isin, dtypes: [float31]}", "'dtypes' must be a list of float32"),
    ("{op: isin, dtypes: []}", "'dtypes' must be"),
    ("{op: isin, links: [isin]}", "'links' must be a list of addresses"),
    ("{op: '../isin'}", "'op' must be the name of an ATen op"),
    ("{demand: 3}", "has a field 'op'"),
    ("[isin]", "has a field 'op'"),
    ("trace", "trace is in the list already"),
])  # fmt: skip
def test_a_wrong_entry_does_not_stop_the_others(tmp_path, entry, told):
    found, (problem,) = load(tmp_path, f"ops:\n  - trace\n  - {entry}\n  - mode\n")
    assert [t.op for t in found] == ["trace", "mode"]
    assert problem.startswith(f"{tmp_path}/targets.yaml:3: ") and told in problem


def test_the_line_is_that_of_the_field(tmp_path):
    _, (problem,) = load(tmp_path, "ops:\n  - op: isin\n    demand: 3\n    dtypes: [f32]\n")
    assert "targets.yaml:4: 'dtypes'" in problem


@pytest.mark.parametrize("text, told", [
    ("ops:\n  - {op: isin\n  - mode\n", ":4: .*mapping of line 2"),
    ("ops:\n\t- isin\n", ":2: "),
    ("", ":1: there is no list 'ops'"),
    ("ops: isin\n", ":1: there is no list 'ops'"),
    ("ops: []\nextra: 1\n", ":2: unknown field 'extra'"),
])  # fmt: skip
def test_a_file_that_cannot_be_read(tmp_path, text, told):
    with pytest.raises(targets.Wrong, match="targets.yaml" + told):
        load(tmp_path, text)
