# SPDX-License-Identifier: Apache-2.0
"""The committed bundles are what make_bundles.py makes, and there is one for each node kind of the schema."""

import json
import re
from importlib import resources

import pytest

pytest.importorskip("executorch.backends.apple.mps", reason="needs .venvs/executorch: scripts/env executorch")

from anymps_executorch.bundles import making  # noqa: E402
from anymps_executorch.bundles.kinds import KINDS  # noqa: E402
from anymps_executorch.environment import ROOT  # noqa: E402

DATA = ROOT / "tests" / "data" / "executorch"


def test_every_kind_has_a_case():
    text = resources.files("executorch.backends.apple.mps.serialization").joinpath("schema.fbs").read_text()
    union = re.search(r"union MPSNodeUnion \{(.*?)\}", text, re.S)[1]
    kinds = set(re.findall(r"^\s*(MPS\w+)", union, re.M))
    assert len(kinds) == 90
    assert set(KINDS) == kinds


@pytest.mark.parametrize("which", ["kinds", "small", "programs"])
def test_all_are_there(which):
    names = {name for name, _ in getattr(making, f"{which}_jobs")()}
    assert names == {p.name for p in (DATA / which).glob("*.pte")}
    table = json.loads((DATA / which / "bundles.json").read_text())
    assert {f"{name}.pte" for name in table} == names


SOME = ["kinds/MPSAvgPool2D_f32", "kinds/MPSDequantizePerChannelGroup_f16", "small/conv1d_f16", "programs/named_data"]


@pytest.mark.parametrize("name", SOME)
def test_the_same_bytes(name):
    """All of them: doors/executorch/make_bundles.py --check."""
    which, stem = name.split("/")
    build = dict(getattr(making, f"{which}_jobs")())[f"{stem}.pte"]
    assert build().data == (DATA / f"{name}.pte").read_bytes()
