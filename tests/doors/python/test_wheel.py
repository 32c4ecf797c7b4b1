# SPDX-License-Identifier: Apache-2.0
"""The wheel: it holds all that it needs. Building one takes a while even with a warm compiler cache, so that runs under
`scripts/test --ci` (ANYMPS_WHEEL_TESTS=1) and `--full` only."""
import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

import anymps

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(anymps.__file__).parent
ENGINE = Path(os.environ.get("ANYMPS_VENV_DIR", ROOT / ".venvs")) / "engine" / "bin" / "python"
GLIBC = {"ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}
PROGRAM = """
import anymps
graph = anymps.Graph()
x = graph.input("x", "f32", ("N", 4))
graph.outputs(anymps.ops.softmax(x @ [[1.0], [2], [3], [4]], axis=0))
print(anymps.compile(graph)([[1, 0, 0, 0], [1, 0, 0, 0]]).tolist(), anymps.__file__)
"""


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=3000, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_stubs_name_every_op_with_the_parameters_it_has():
    tree = ast.parse((PACKAGE / "ops.pyi").read_text(encoding="utf-8"))
    stubs = {node.name: node.args for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(stubs) == set(anymps.ops.__all__)
    for name, args in stubs.items():
        names = [a.arg for a in (*args.args, *([args.vararg] if args.vararg else []), *args.kwonlyargs)]
        assert sorted(names) == sorted(getattr(anymps.ops, name).__signature__.parameters), name
    assert "class Tensor" in (PACKAGE / "_core.pyi").read_text(encoding="utf-8")
    assert (PACKAGE / "py.typed").exists()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The compilers are those of build/ by name: the compiler cache then has nearly all that is to be compiled."""
    if not os.environ.keys() & {"ANYMPS_FULL_TESTS", "ANYMPS_WHEEL_TESTS"}:
        pytest.skip("builds a wheel; scripts/test --ci")
    folder = tmp_path_factory.mktemp("wheel")
    cache = (ROOT / "build" / "CMakeCache.txt").read_text()
    compilers = {name: re.search(rf"^CMAKE_{language}_COMPILER:\w+=(.*)$", cache, re.M)[1] for name, language in (("CC", "C"), ("CXX", "CXX"))}
    run(ENGINE, "-m", "pip", "wheel", ROOT, "--no-build-isolation", "--no-deps", "-w", folder, "-C", f"build-dir={ROOT / 'build-wheel'}",
        env=os.environ | compilers)
    (file,) = folder.glob("anymps-*.whl")
    return file


def test_a_wheel_runs_in_an_environment_of_its_own(wheel, tmp_path):
    venv.create(tmp_path / "fresh")
    python = tmp_path / "fresh" / "bin" / "python"
    run(ENGINE, "-m", "pip", "--python", python, "install", "--no-deps", wheel)
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "PYTHONPATH", "ANYMPS_VENV_DIR")}
    packages = Path(np.__file__).parents[1]
    out = run(python, "-c", PROGRAM, cwd=tmp_path, env=clean | {"PYTHONPATH": str(packages)})
    assert out.startswith("[[0.5], [0.5]]") and str(tmp_path) in out


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path))


def test_a_wheel_holds_every_library_that_it_needs(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    libraries = [p for p in tmp_path.rglob("*.so*") if p.read_bytes()[:4] == b"\x7fELF"]
    assert len(libraries) > 10
    assert {p.name for p in libraries if "carried" in p.parts} == {"libgcc_s.so.1", "libstdc++.so.6"}
    for path in libraries:
        missing = set(needed(path)) - GLIBC - {p.name for p in libraries}
        assert not missing, f"{path.name} needs {missing}"
        assert "/" not in re.sub(r"\$ORIGIN(/\w+)?", "", "".join(re.findall(r"PATH\).*\[(.*)\]", run("readelf", "-d", path)))), path.name


def put(root, path):
    """The file at the same place under another root, without a copy where that is possible."""
    target = root / str(path).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        return
    try:
        os.link(path.resolve(), target)
    except OSError:
        shutil.copy(path, target)


def make_root(root, wheel):
    """Python as it is installed here, numpy, the wheel, and of the system's libraries glibc's and those that Python needs."""
    python, library = Path(sys._base_executable).resolve(), Path(sysconfig.get_path("stdlib"))
    unused = {"site-packages", "dist-packages", "test", "__pycache__"}
    files = [p for p in library.rglob("*") if p.is_file() and not unused & set(p.parts) and not p.name.startswith("_tkinter")]
    files.append(python)
    numpy = Path(np.__file__).parent
    for path in files:
        put(root, path)
    for path in (p for p in files if p.suffix == ".so" or p == python):
        for found in re.findall(r"(?:=> |^\s+)(/\S+) \(", run("ldd", path), re.M):
            put(root, Path(found))
            for name in GLIBC if Path(found).name == "libc.so.6" else ():
                if Path(found).with_name(name).exists():
                    put(root, Path(found).with_name(name))
    for folder in (numpy, numpy.parent / "numpy.libs"):
        for path in (p for p in folder.rglob("*") if p.is_file() and "tests" not in p.parts):
            target = root / "site" / path.relative_to(numpy.parent)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    zipfile.ZipFile(wheel).extractall(root / "site")
    shutil.copy(ROOT / "tests" / "embedding" / "beside.py", root)
    (root / "tmp").mkdir(exist_ok=True)
    return python


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    """A function that runs Python in a root of its own."""
    enter = ["chroot"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "chroot"]
    if subprocess.run([*enter, "/", "true"], capture_output=True).returncode != 0:
        pytest.skip("needs root, or user namespaces, for another root folder")
    root = tmp_path_factory.mktemp("root")
    python = make_root(root, wheel)
    env = {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": "/site", "PATH": "/usr/sbin:/usr/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    yield root, lambda *arguments: run(*enter, root, python, *arguments, env=env)
    shutil.rmtree(root)


def test_a_wheel_runs_where_there_is_nothing_but_python_and_glibc(bare):
    root, python = bare
    assert not [p for p in root.rglob("*.so*") if re.match(r"lib(stdc\+\+|gomp|gcc_s)\.", p.name) and "carried" not in p.parts]
    assert python("/beside.py", "anymps") == run(sys.executable, ROOT / "tests" / "embedding" / "beside.py", "anymps")


def test_a_wheel_runs_where_the_runtime_library_of_cxx_is_too_old(bare):
    root, python = bare
    (libc,) = root.glob("**/libc.so.6")
    old = libc.with_name("libstdc++.so.6")
    (root / "old.map").write_text("GLIBCXX_3.4 { *; };")
    run("gcc", "-shared", "-x", "c", "/dev/null", "-o", old, "-Wl,-soname,libstdc++.so.6", f"-Wl,--version-script={root / 'old.map'}")
    try:
        assert python("-c", PROGRAM).startswith("[[0.5], [0.5]]")
        loaded_before = "import ctypes; ctypes.CDLL('libstdc++.so.6')\ntry: import anymps\nexcept ImportError as error: print(error)"
        assert "libstdc++.so.6: version" in python("-c", loaded_before)
    finally:
        old.unlink()
