# SPDX-License-Identifier: Apache-2.0
"""The arrows of docs/design.md: which folder of src/ may include which. An include that points up fails here."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

# Folder -> folders it may include besides itself.
ALLOWED = {
    "base": set(),
    "memory": {"base"},
    "semantics": {"base"},
    "ops": {"semantics", "base"},
    "graph": {"ops", "memory", "base"},
    "passes": {"graph", "ops", "memory", "base"},
    "drivers": {"ops", "semantics", "memory", "base"},
    "runtime": {"passes", "graph", "drivers", "ops", "memory", "base"},
    "formats": {"graph", "ops", "semantics", "memory", "base"},
    "api": {"formats", "runtime", "passes", "graph", "drivers", "ops", "memory", "base", "anymps"},
}
SOURCES = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in (".h", ".cc"))
# doors/executorch/cmake-out is where ExecuTorch's description builds.
DOORS = sorted(p for p in (ROOT / "doors").rglob("*") if p.suffix in (".h", ".cc", ".hpp", ".cpp") and "cmake-out" not in p.parts)


def includes(path):
    return INCLUDE.findall(path.read_text())


def test_there_are_sources():
    assert len(SOURCES) > 100


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "src")))
def test_arrows_point_down(path):
    folder = path.relative_to(ROOT / "src").parts[0]
    for name in includes(path):
        target = name.split("/")[0]
        if target == folder or not (ROOT / "src" / name).exists() and target != "anymps":
            continue
        assert target in ALLOWED[folder], f"{path.relative_to(ROOT)} includes {name}: {folder} must not know {target}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "src")))
def test_only_a_driver_knows_its_own_folder(path):
    """drivers/cpu/x.h is included from drivers/cpu alone; the reference kernels also by the fallback."""
    parts = path.relative_to(ROOT / "src").parts
    for name in includes(path):
        inner = name.split("/")
        if inner[0] != "drivers" or len(inner) < 3 or parts[:2] == tuple(inner[:2]):
            continue
        assert inner[1] == "reference" and path.name == "reference_fallback.cc", f"{path.relative_to(ROOT)} includes {name}"


# Door -> doors it may include besides itself; all may use doors/common.
DOOR_ALLOWED = {"server": {"serving"}, "triton": {"serving"}}
GENERATED = re.compile(r"\w+(\.grpc)?\.pb\.h")  # the server's protocol


@pytest.mark.parametrize("path", DOORS, ids=lambda p: str(p.relative_to(ROOT)))
def test_doors_use_public_headers_alone(path):
    """... what doors/common has for all of them, and what two of them share."""
    door = path.relative_to(ROOT / "doors").parts[0]
    for name in includes(path):
        shared = name.split("/")[0] in {door, "common"} | DOOR_ALLOWED.get(door, set()) and (ROOT / "doors" / name).exists()
        local = (path.parent / name).exists() or (door == "server" and GENERATED.fullmatch(name))
        assert shared or local or name.startswith("anymps/"), f"{path.relative_to(ROOT)} includes {name}"


def test_files_are_short():
    """A file fits on a few screens: past 600 lines it is to be split."""
    long = [f"{p.relative_to(ROOT)}: {n}" for p in SOURCES + DOORS if (n := len(p.read_text().splitlines())) > 600]
    assert not long, long
