# SPDX-License-Identifier: Apache-2.0
"""The images have every library that our programs load, and the server's has no other: requirements/debian-runtime.txt is what
the programs ask for. Triton's image is not ours: there the backend gets along with what it has."""
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from .container import ROOT

SERVER = [p for p in (ROOT / "build" / "bin" / "anymps-server", ROOT / "build" / "bin" / "anymps") if p.exists()]
BACKEND = ROOT / "build" / "backends" / "metal_mps" / "libtriton_metal_mps.so"
# What an image of tritonserver has for its own sake: the C and C++ libraries. The versions are those of Ubuntu 22.04, which the
# images up to 24.10 are made of.
TRITON_LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "libstdc++.so.6", "libgcc_s.so.1"}
TRITON_VERSIONS = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}

needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg-query"), reason="not a Debian system")


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout


def packages():
    lines = (ROOT / "requirements" / "debian-runtime.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def loaded(program):
    """{name: path} of all libraries that it loads."""
    found = {}
    for line in run("ldd", program).splitlines():
        name, _, path = line.strip().partition(" => ")
        assert "not found" not in path, line
        path = path.split(" (")[0] if path else name.split(" (")[0]
        if path.startswith("/"):
            found[Path(name.split(" (")[0]).name] = Path(path)
    return found


def of_the_system(program):
    return {name: path for name, path in loaded(program).items() if str(path).startswith(("/lib", "/usr/lib"))}


def needed(path):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path)))


@cache
def owner_of(path):
    """dpkg knows a file by the name that it was installed under: /lib is /usr/lib today."""
    for name in {str(path), str(path.resolve()), str(path).removeprefix("/usr"), str(path.resolve()).removeprefix("/usr"), f"/usr{path}"}:
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    return None


def with_dependencies(names):
    found, new = set(), list(names)
    while new:
        name = new.pop()
        if name in found:
            continue
        found.add(name)
        shown = subprocess.run(["dpkg-query", "-W", "-f", "${Depends},${Pre-Depends}", name], capture_output=True, text=True).stdout
        new += [part.split("|")[0].split()[0].split(":")[0] for part in shown.split(",") if part.strip()]
    return found


@needs_dpkg
@pytest.mark.parametrize("program", SERVER, ids=lambda p: p.name)
def test_the_image_has_all_libraries(program):
    """Each library that the program loads from the system belongs to a package of debian-runtime.txt, or one that those need."""
    there = with_dependencies(packages())
    for path in of_the_system(program).values():
        owner = owner_of(path)
        assert owner in there, f"{program.name} loads {path} of package {owner}, which requirements/debian-runtime.txt does not bring"


@needs_dpkg
@pytest.mark.skipif(len(SERVER) < 2, reason="the programs are not built")
def test_the_image_has_no_other_libraries():
    """A package of debian-runtime.txt has a library that one of our files names itself."""
    ours = {path for program in SERVER for path in [program, *loaded(program).values()] if path.resolve().is_relative_to(ROOT)}
    wanted = {owner_of(path) for program in SERVER for name, path in of_the_system(program).items() if any(name in needed(file) for file in ours)}
    assert set(packages()) <= wanted, f"nothing asks for {sorted(set(packages()) - wanted)}: take it out of requirements/debian-runtime.txt"


@pytest.mark.skipif(not BACKEND.exists(), reason="the backend is not built")
def test_tritons_image_has_all_libraries():
    """What the backend does not bring along must be there, in a version that is old enough."""
    assert not set(of_the_system(BACKEND)) - TRITON_LIBRARIES
    for path in [BACKEND, *(p for p in loaded(BACKEND).values() if not str(p).startswith(("/lib", "/usr/lib")))]:
        for name, text in re.findall(r"Name: (GLIBCXX|GLIBC|CXXABI|GCC)_([\d.]+)", run("readelf", "-V", path)):
            assert tuple(map(int, text.split("."))) <= TRITON_VERSIONS[name], f"{path.name} needs {name}_{text}"
