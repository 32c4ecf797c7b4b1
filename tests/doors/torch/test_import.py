# SPDX-License-Identifier: Apache-2.0
"""What `import torch` pays for the door: little time, no threads, nothing on the screen, and no harm where it does not fit."""
import pytest

from tests.doors.torch.alone import run_alone

BY_HAND = """
    import time, torch
    start = time.perf_counter()
    torch._import_device_backends()
    print((time.perf_counter() - start) * 1000)
"""


def test_import_time():
    """The door's part of the import, the best of some processes: a bound on what it costs, not on how busy the machine is."""
    run_alone(BY_HAND, TORCH_DEVICE_BACKEND_AUTOLOAD="0")  # its files into the cache
    times = [float(run_alone(BY_HAND, TORCH_DEVICE_BACKEND_AUTOLOAD="0")) for _ in range(3)]
    assert min(times) < 100, times


def test_no_threads_before_use():
    program = """
        import os, torch
        print(len(os.listdir("/proc/self/task")))
        if IN_USE:
            x = torch.ones(1 << 22, device="mps")
            (x + x).cpu()
            print("used")
    """
    without = run_alone(program.replace("IN_USE", "False"), TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert run_alone(program.replace("IN_USE", "False")) == without
    assert run_alone(program.replace("IN_USE", "True")).split() == [*without.split(), "used"]


def test_import_is_silent():
    assert run_alone("""
        import subprocess, sys
        done = subprocess.run([sys.executable, "-W", "always", "-c", "import torch"], capture_output=True, text=True)
        print(repr(done.stdout + done.stderr), done.returncode)
    """) == "'' 0"


def test_autoload_can_be_switched_off():
    assert run_alone("import torch; print(torch.backends.mps.is_available())", TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "False"


HARMLESS = """
    import os, sys, tempfile
    import torch
    SETTING
    with tempfile.TemporaryFile("w+") as said:
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            torch._import_device_backends()
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
        said.seek(0)
        lines = said.read().strip().splitlines()
    assert len(lines) <= 1, lines
    assert torch.backends.mps.is_available() is False and torch.backends.mps.is_built() is False
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    try:
        torch.ones(2, device="mps")
    except (RuntimeError, NotImplementedError, AssertionError):
        pass
    else:
        raise SystemExit("there is a device")
"""
OTHER_VERSION = """
    torch.__version__ = torch.torch_version.TorchVersion("2.14.1")
    torch.version.__version__ = "2.14.1"
"""


@pytest.mark.parametrize("setting, environment", [(OTHER_VERSION, {}), ("", {"ANYMPS_TORCH_KERNELS": "/nowhere/library.so"})],
                         ids=["another torch", "a library that does not load"])
def test_harmless_where_it_does_not_fit(setting, environment):
    """One line at most, no device, and torch as it was."""
    run_alone(HARMLESS.replace("SETTING", setting.strip(), 1), TORCH_DEVICE_BACKEND_AUTOLOAD="0", **environment)


def test_can_be_switched_off():
    assert run_alone("import torch; print(torch.backends.mps.is_available())", ANYMPS_TORCH="0") == "False"


def test_without_torch():
    """The package is imported, and says in one line what is missing."""
    assert run_alone("""
        import contextlib, io, sys
        sys.modules["torch"] = None  # as if it were not installed
        import torch_anymps
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            torch_anymps.autoload()
        print(len(said.getvalue().splitlines()), "PyTorch" in said.getvalue())
        for use in (torch_anymps.fallbacks, torch_anymps.transfers, lambda: torch_anymps.strict().__enter__()):
            try:
                use()
            except ImportError as error:
                print("torch" in str(error), len(str(error).splitlines()))
    """).splitlines() == ["1 True"] + ["True 1"] * 3
