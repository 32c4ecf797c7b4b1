# SPDX-License-Identifier: Apache-2.0
"""The arrows of docs/design.md: which folder of src/ may know which. An include that points up fails here, and so does a
link: what a header of a folder declares must not be defined in a folder above it."""
import collections
import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

# Folder -> folders it may include, and link to, besides itself.
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


def test_every_permission_is_used():
    """A permission that nobody needs is an arrow that nobody would notice."""
    used = collections.defaultdict(set)
    for path in SOURCES:
        for name in includes(path):
            used[path.relative_to(ROOT / "src").parts[0]].add(name.split("/")[0])
    unused = {folder: sorted(allowed - used[folder]) for folder, allowed in ALLOWED.items() if allowed - used[folder]}
    assert not unused, unused


OBJECT = re.compile(r" -o (CMakeFiles/anymps_(?:kernels|runtime|cold)\.dir/\S+)")
UNITY_PART = re.compile(r'^#include "(.+\.cc)"', re.M)


def object_folders(build):
    """Object file -> its folder of src/, for the engine's objects that the last configuration makes. An object of a unity
    build holds files of one folder, which its source includes by their names."""
    folders = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        output, source = OBJECT.search(entry["command"]), Path(entry["file"])
        if not output:
            continue
        parts = UNITY_PART.findall(source.read_text()) if source.suffix == ".cxx" else [str(source)]
        of_parts = {Path(part).relative_to(ROOT / "src").parts[0] for part in parts}
        assert len(of_parts) == 1, f"{source} holds files of {sorted(of_parts)}"
        folders[str(Path(entry["directory"]) / output[1])] = of_parts.pop()
    return folders


def upward_links(folders, symbols):
    """Uses of a symbol that folders which the user must not know define, as text. symbols: object, name and kind (nm's)."""
    strong, weak, uses = (collections.defaultdict(set) for _ in range(3))
    for file, name, kind in symbols:
        folder = folders[file]
        # Inline functions and templates are weak: whoever uses one has it.
        (uses if kind == "U" else weak if kind in "VWvwu" else strong)[name].add(folder)
    wrong = []
    for name, users in uses.items():
        definers = strong[name] or weak[name]
        for user in users:
            if definers and not definers & (ALLOWED[user] | {user}):
                wrong.append(f"{user} uses {name} of {', '.join(sorted(definers))}")
    return sorted(wrong)


def test_links_point_down():
    build = ROOT / "build"
    if not (build / "compile_commands.json").exists():
        pytest.skip("nothing is built: cmake --preset release && cmake --build build")
    folders = object_folders(build)
    assert set(folders.values()) == set(ALLOWED)
    missing = [file for file in folders if not Path(file).exists()]
    if missing:
        pytest.skip(f"{len(missing)} of {len(folders)} objects are not built, for example {missing[:1]}")
    listing = subprocess.run(["nm", "-A", "--format=posix", *folders], capture_output=True, text=True, check=True).stdout
    symbols = []
    for line in listing.splitlines():
        file, name, kind = line.split()[:3]
        # Of the project's namespace. Lower-case kinds but those of weak symbols are local to their object.
        if "6anymps" in name and (kind.isupper() or kind in "vwu"):
            symbols.append((file.removesuffix(":"), name, kind))
    assert len(symbols) > 1000
    wrong = upward_links(folders, symbols)
    assert not wrong, subprocess.run(["c++filt"], input="\n".join(wrong), capture_output=True, text=True).stdout


def test_an_upward_link_is_seen():
    folders = {"a.o": "ops", "b.o": "graph", "c.o": "passes"}
    down = [("b.o", "anymps::f()", "U"), ("a.o", "anymps::f()", "T"), ("c.o", "anymps::g()", "U"), ("b.o", "anymps::g()", "W")]
    assert upward_links(folders, down) == []
    up = [("a.o", "anymps::h()", "U"), ("b.o", "anymps::h()", "T")]
    assert upward_links(folders, down + up) == ["ops uses anymps::h() of graph"]


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
DOOR_ALLOWED = {"server": {"serving"}, "triton": {"serving"}, "paddle": {"lowering"}, "torch": {"lowering"}}
GENERATED = re.compile(r"\w+(\.grpc)?\.pb\.h")  # the server's protocol


@pytest.mark.parametrize("path", DOORS, ids=lambda p: str(p.relative_to(ROOT)))
def test_doors_use_public_headers_alone(path):
    """... what doors/common has for all of them, and what two of them share."""
    door = path.relative_to(ROOT / "doors").parts[0]
    for name in includes(path):
        shared = name.split("/")[0] in {door, "common"} | DOOR_ALLOWED.get(door, set()) and (ROOT / "doors" / name).exists()
        local = any((folder / name).exists() for folder in (path.parent, ROOT / "doors" / door / "csrc")) or (door == "server" and GENERATED.fullmatch(name))
        assert shared or local or name.startswith("anymps/"), f"{path.relative_to(ROOT)} includes {name}"


CLASS = re.compile(r"^(?:class|struct) (\w+)(?: final)?(?: :[^;{]*)? \{")


def classes(path):
    """The classes that a file defines at the level of namespaces that have names."""
    spaces = []
    for line in path.read_text().splitlines():
        if opened := re.match(r"namespace ([\w:]*) ?\{", line):
            spaces.append(opened[1])
        elif line.startswith("}  // namespace"):
            spaces.pop()
        elif (found := CLASS.match(line)) and all(spaces):
            yield "::".join([*spaces, found[1]])


def test_a_class_has_one_definition():
    """Two of one name in one namespace are one to the linker, which keeps the functions of either."""
    where = {}
    for path in SOURCES + DOORS:
        for name in classes(path):
            where.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    twice = {name: sorted(paths) for name, paths in where.items() if len(paths) > 1}
    assert not twice, twice
