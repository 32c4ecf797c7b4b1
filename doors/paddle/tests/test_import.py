# SPDX-License-Identifier: Apache-2.0
"""`import paddle` works whatever state the package is in: the wrong Paddle, a missing engine, after uninstalling."""

import importlib.metadata
import os
import shutil
import site
import subprocess
import sys
import textwrap

import pytest
import support

COMPUTES = "import paddle; print(paddle.is_compiled_with_mps(), paddle.mps.is_available(), paddle.get_device(), float((paddle.ones([2]) + 1).sum()))"


def package_folder():
    import paddle_anymps

    return os.path.dirname(os.path.abspath(paddle_anymps.__file__))


def test_nothing_is_imported_before_paddle():
    code = "import sys; print(sorted(m for m in sys.modules if 'paddle' in m))"
    assert support.run_python(code).stdout.strip() == "['_paddle_anymps_hook']"


def test_the_hook_costs_next_to_nothing():
    code = textwrap.dedent("""
        import importlib, sys, time
        times = []
        for _ in range(50):
            sys.modules.pop("_paddle_anymps_hook")
            start = time.perf_counter()
            importlib.import_module("_paddle_anymps_hook")
            times.append(time.perf_counter() - start)
            sys.meta_path.pop(0)
        print(sorted(times)[25] * 1e3)
    """)
    assert float(support.run_python(code).stdout) < 2, "milliseconds"


def test_the_import_is_quiet_and_logging_is_as_before():
    result = support.run_python("import paddle, os; print('GLOG_minloglevel' in os.environ)", GLOG_v=None)
    assert result.stderr == "" and result.stdout.strip() == "False"
    shown = support.run_python("import paddle", GLOG_v="1").stderr
    assert "libpaddle_anymps.so" in shown


def test_without_the_engine(tmp_path):
    result = support.run_python(COMPUTES, ANYMPS_LIBRARY=str(tmp_path / "none.so"))
    assert result.stdout.split() == ["False", "False", "cpu", "4.0"], result.stderr
    lines = [line for line in result.stderr.splitlines() if "paddle_anymps:" in line]
    assert len(lines) == 1 and "none.so" in lines[0]


def test_with_a_library_that_is_not_the_engine():
    result = support.run_python(COMPUTES, ANYMPS_LIBRARY="libm.so.6")
    assert result.stdout.split() == ["False", "False", "cpu", "4.0"], result.stderr
    assert "is older than this plug-in" in result.stderr


def test_another_version_of_paddle_is_refused(tmp_path):
    """The plug-in reads the version beside the library that calls it, so a Paddle with another one is made of links."""
    packages = next(path for path in site.getsitepackages() if os.path.isdir(os.path.join(path, "paddle")))
    for name in os.listdir(packages):
        if name != "paddle" and not name.startswith("paddlepaddle"):
            os.symlink(os.path.join(packages, name), tmp_path / name)
    (tmp_path / "paddle").mkdir()
    for name in os.listdir(os.path.join(packages, "paddle")):
        if name not in ("version", "base"):
            os.symlink(os.path.join(packages, "paddle", name), tmp_path / "paddle" / name)
    (tmp_path / "paddle/base").mkdir()
    for name in os.listdir(os.path.join(packages, "paddle/base")):
        source, target = os.path.join(packages, "paddle/base", name), tmp_path / "paddle/base" / name
        if name.endswith(".so"):
            os.link(source, target) if os.stat(source).st_dev == os.stat(tmp_path).st_dev else shutil.copy(source, target)
        else:
            os.symlink(source, target)
    shutil.copytree(os.path.join(packages, "paddle/version"), tmp_path / "paddle/version")
    version = tmp_path / "paddle/version/__init__.py"
    version.write_text(version.read_text().replace("full_version     = '3.3.1'", "full_version     = '3.3.9'"))
    code = f"import sys; sys.path[:] = [p for p in sys.path if p != {packages!r}]; sys.path.insert(0, {str(tmp_path)!r}); {COMPUTES}"
    root = os.path.join(packages, "paddle_custom_device")
    result = support.run_python(code, CUSTOM_DEVICE_ROOT=root)
    assert result.stdout.split() == ["False", "False", "cpu", "4.0"], result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("paddle_anymps:")]
    assert lines == ["paddle_anymps: the device mps is not available: this PaddlePaddle is 3.3.9, but the plug-in was built for 3.3.1"]


def test_uninstalled_files_are_all_known_to_pip():
    """What pip knows of, it removes: nothing else of ours may lie in site-packages."""
    files = {str(file).split(os.sep)[0] for file in importlib.metadata.files("paddle-anymps")}
    assert {"_paddle_anymps_hook.py", "paddle_anymps.pth", "paddle_anymps", "paddle_custom_device"} <= files
    packages = os.path.dirname(package_folder())
    ours = {name for name in os.listdir(packages) if "anymps" in name and not name.endswith(".pyc")}
    assert ours <= files | {name for name in ours if name == "__pycache__"}


def test_a_package_that_is_half_removed():
    """The hook without the package, as while pip removes files."""
    code = "import sys; sys.modules['paddle_anymps'] = None; import paddle; print(paddle.get_device(), hasattr(paddle, 'mps'))"
    result = support.run_python(code, CUSTOM_DEVICE_ROOT="")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["cpu", "False"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_engine_is_private():
    """Its symbols are not in the global scope, and Paddle's oneDNN stays Paddle's."""
    code = textwrap.dedent("""
        import ctypes, paddle
        names = ["amps_get_api", "amps_device_get", "anymps_paddle_fill"]
        print([name for name in names if hasattr(ctypes.CDLL(None), name)])
        maps = open("/proc/self/maps").read()
        print("libanymps_dnnl.so.3" in maps, "libdnnl.so.3" in maps.replace("libanymps_dnnl.so.3", ""))
    """)
    result = support.run_python(code)
    assert result.stdout.split("\n")[:2] == ["[]", "True True"], result.stdout + result.stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="compiles a small library")
def test_beside_a_preloaded_malloc(tmp_path):
    """As with jemalloc or tcmalloc: whoever frees must ask the one who allocated."""
    source, library = os.path.join(os.path.dirname(__file__), "preloaded_malloc.c"), tmp_path / "preloaded_malloc.so"
    subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", source, "-o", library], check=True)
    code = "import paddle; x = paddle.ones([1, 3, 8, 8], place='mps'); print(float((x + x).sum()), paddle.mps.get_device_name() != '')"
    result = support.run_python(code, LD_PRELOAD=str(library))
    assert result.stdout.split() == ["384.0", "True"], result.stderr
