# SPDX-License-Identifier: Apache-2.0
"""Nothing in a process can take the place of a library that the engine is made of."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ANYMPS_BUILD_DIR", ROOT / "build"))
# Of the C and C++ run-time libraries there is one in a process. What else is needed bears our name: so there is no OpenMP.
SHARED = {"ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libpthread.so.0", "libdl.so.2"}
PRIVATE = sorted((BUILD / "lib").glob("libanymps_*.so.*"))
IMPOSTOR = """
import ctypes, runpy, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
sys.argv[1:] = ["anymps"]
runpy.run_path("tests/embedding/beside.py")
import anymps
import numpy as np
png = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc00000030101001"
                    "8dd8db00000000049454e44ae426082")
assert np.asarray(anymps.ops.image_decoder(np.frombuffer(png, np.uint8))).shape == (1, 1, 3)
"""


def dynamic(path, tag):
    text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return re.findall(rf"\({tag}\).*\[(.*)\]", text)


def defined(path, kinds):
    """The dynamic symbols that a library defines, without their versions."""
    lines = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return [name.split("@")[0] for _, kind, name in map(str.split, lines) if kind in kinds]


def test_there_are_private_libraries():
    assert {"dnnl", "gomp", "lapack", "blas", "hwy", "re2", "png"} <= {p.name.removeprefix("libanymps_").split(".")[0] for p in PRIVATE}


@pytest.mark.parametrize("path", [BUILD / "lib" / "libanymps.so", *PRIVATE], ids=lambda p: p.name)
def test_it_needs_nothing_that_another_library_could_be(path):
    for name in dynamic(path, "NEEDED"):
        assert name in SHARED or name in {p.name for p in PRIVATE}, f"{path.name} needs {name}"


@pytest.mark.parametrize("path", PRIVATE, ids=lambda p: p.name)
def test_a_private_library_bears_our_name(path):
    assert dynamic(path, "SONAME") == [path.name]
    assert all(name.startswith("anymps_") for name in defined(path, "BCDGRSTVWiuvw"))


LOADED = """
import runpy, sys
sys.argv[1:] = ["anymps"]
runpy.run_path("tests/embedding/beside.py")
print(*{line.split("/")[-1].strip() for line in open("/proc/self/maps") if ".so" in line})
"""


def test_a_process_that_computes_loads_no_openmp():
    """Whoever needs a libgomp may have its own: of one name a process has one, with one set of threads and settings."""
    names = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, cwd=ROOT, timeout=300,
                           env={**os.environ, "PYTHONPATH": str(BUILD / "python")}).stdout.split()
    assert "libanymps_gomp.so.1" in names
    assert not [name for name in names if re.match(r"lib(gomp|omp|iomp5)\b", name)]


def test_functions_of_the_same_names_are_not_taken(tmp_path):
    """A library that everybody sees, and that has every function of ours under its plain name: calling one ends the process."""
    theirs = re.compile(r"libanymps_(gfortran|quadmath|z)\.")  # numpy and Python call these themselves
    names = sorted({name.removeprefix("anymps_") for path in PRIVATE if not theirs.match(path.name) for name in defined(path, "T")})
    assert {"dgesdd_", "dnnl_primitive_execute", "png_read_image"} <= set(names)
    (tmp_path / "impostor.c").write_text("#include <stdlib.h>\nvoid impostor(void) { abort(); }\n__asm__(\"" + "".join(
        f".globl {name}\\n.set {name}, impostor\\n" for name in names) + "\");\n")
    subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "impostor.c", "-o", tmp_path / "impostor.so"], check=True)
    done = subprocess.run([sys.executable, "-c", IMPOSTOR, tmp_path / "impostor.so"], capture_output=True, text=True, cwd=ROOT, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr}"
