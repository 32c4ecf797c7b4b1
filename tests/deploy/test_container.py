# SPDX-License-Identifier: Apache-2.0
"""deploy/Containerfile: what it copies is there, its stages fit, and the image has every library that our programs load."""
import shutil
import subprocess
from pathlib import Path

import pytest

from .container import ROOT, instructions

KNOWN = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}
PROGRAMS = [p for p in (ROOT / "build" / "bin" / "anymps-server", ROOT / "build" / "bin" / "anymps",
                        ROOT / "build" / "backends" / "metal_mps" / "libtriton_metal_mps.so") if p.exists()]


def packages():
    lines = (ROOT / "requirements" / "debian-runtime.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_instructions_and_stages():
    stages = []
    for stage, name, rest in instructions():
        assert name in KNOWN, name
        if name == "FROM":
            source = rest.split(" AS ")[0]
            assert source in (*stages, "debian:12-slim", "${TRITON_IMAGE}"), source
            stages.append(stage)
        if name == "COPY":
            words = rest.split()
            if words[0].startswith("--from="):
                assert words[0].removeprefix("--from=") in stages
            else:
                assert all((ROOT / w).exists() for w in words[:-1]), rest
    assert {"server", "triton"} <= set(stages)


def test_the_server_runs_as_nobody_special():
    names = [name for stage, name, _ in instructions() if stage == "server"]
    assert "USER" in names and names.index("USER") < names.index("ENTRYPOINT")


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


@pytest.mark.skipif(not shutil.which("dpkg-query"), reason="not a Debian system")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_the_image_has_all_libraries(program):
    """Each library that the program loads from the system belongs to a package of debian-runtime.txt, or one that those need."""
    there = with_dependencies(packages())
    for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines():
        path = line.partition("=>")[2].split(" (")[0].strip()
        if not path.startswith(("/lib", "/usr/lib")):
            continue  # ours, or the loader
        owner = owner_of(Path(path))
        assert owner in there, f"{program.name} loads {path} of package {owner}, which requirements/debian-runtime.txt does not bring"


def owner_of(path):
    """dpkg knows a file by the name that it was installed under: /lib is /usr/lib today."""
    for name in {str(path), str(path.resolve()), str(path).removeprefix("/usr"), str(path.resolve()).removeprefix("/usr"), f"/usr{path}"}:
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    return None
