# SPDX-License-Identifier: Apache-2.0
"""What the pages show is true: code is that of the tree or compiles and runs, commands work and print what is shown.

The op of add_an_op.md is in add_an_op_test.cc, the Python of quickstart.md and README.md in tests/doors/python/test_quickstart.py."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ANYMPS_BUILD_DIR", ROOT / "build"))


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)


def test_the_pass_of_the_page_is_that_of_the_tree():
    tree = (ROOT / "src/passes/fuse_conv.cc").read_text() + (ROOT / "tests/passes/fuse_conv_test.cc").read_text()
    shown = blocks("docs/guides/add_a_pass.md", "cpp")
    assert len(shown) == 5
    for block in shown:
        assert block in tree, block
    before, after = blocks("docs/guides/add_a_pass.md", "")[:2]
    assert before in tree and after in tree


def test_the_calls_of_the_page(tmp_path):
    (program,) = blocks("docs/guides/eager_calls.md", "c")
    (printed,) = blocks("docs/guides/eager_calls.md", "text")
    (tmp_path / "program.c").write_text(program)
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", tmp_path / "program.c", "-o", tmp_path / "program",
                    f"-L{BUILD / 'lib'}", "-lanymps", f"-Wl,-rpath,{BUILD / 'lib'}", "-Wl,--unresolved-symbols=ignore-in-shared-libs"], check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == printed, done.stdout + done.stderr


def test_the_program_for_compilers(tmp_path):
    (program,) = blocks("docs/guides/compilers.md", "cpp")
    (printed,) = blocks("docs/guides/compilers.md", "text")
    (tmp_path / "program.cc").write_text(program)
    subprocess.run(["g++", "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", f"-I{ROOT / 'include'}", tmp_path / "program.cc",
                    "-o", tmp_path / "program", f"-L{BUILD / 'lib'}", "-lanymps", f"-Wl,-rpath,{BUILD / 'lib'}", "-Wl,--unresolved-symbols=ignore-in-shared-libs"],
                   check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == printed, done.stdout + done.stderr


@pytest.mark.parametrize("language, compiler, printed", [
    ("c", ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror"], ["0.032059", "0.087144", "0.236883", "0.643914"]),
    ("cpp", ["g++", "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"], ["0.119203", "0.880797"])])
def test_the_readmes_programs(language, compiler, printed, tmp_path):
    (program,) = blocks("README.md", language)
    (tmp_path / f"program.{language}").write_text(program)
    subprocess.run([*compiler, f"-I{ROOT / 'include'}", tmp_path / f"program.{language}", "-o", tmp_path / "program", f"-L{BUILD / 'lib'}", "-lanymps",
                    f"-Wl,-rpath,{BUILD / 'lib'}", "-Wl,--unresolved-symbols=ignore-in-shared-libs"], check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.split() == printed, done.stdout + done.stderr


@pytest.fixture
def reader(tmp_path):
    """A shell as the pages assume it: the project's folder below, the command and Python's package found."""
    for name in ("examples", "build"):
        (tmp_path / name).symlink_to(BUILD if name == "build" else ROOT / name)
    (tmp_path / "model.onnx").symlink_to(ROOT / "examples" / "models" / "classifier.onnx")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "less").symlink_to("/bin/cat")
    (tmp_path / "bin" / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "bin" / "python3").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{BUILD / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(BUILD / "python")}
    env.pop("ANYMPS_CHECK", None)

    def run(command):
        return subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)

    return run


def comparable(line):
    """A line without what depends on the machine: times, rounding, the kernel that was chosen."""
    line = re.sub(r"(cpu:\w+( packed)?|\bat \[[\d, ]+\])", "?", line)
    line = re.sub(r"(?<![\w.])\d+\.\d+(?![\w.])", "#", line)
    return " ".join(line.split())


def commands(page):
    """(command, lines that it prints) of each `$ command`."""
    for block in blocks(page, ""):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *shown = part.splitlines()
            yield re.sub(r"\s+# or: .*", "", command), [line for line in shown if line.strip() not in ("", "…")]


def test_the_commands_of_the_debugging_page(reader):
    found = list(commands("docs/guides/debugging.md"))
    assert len(found) == 10
    for command, shown in found:
        done = reader(command)
        assert done.returncode == (3 if "RTOL" in command else 0), (command, done.stderr)
        printed = {comparable(line) for line in (done.stdout + done.stderr).splitlines()}
        for line in shown:
            assert comparable(line) in printed, (command, line, done.stdout + done.stderr)


@pytest.mark.parametrize("page", ["docs/guides/debugging.md", "docs/guides/add_a_pass.md", "docs/guides/add_an_op.md"])
def test_commands_within_the_text(page, reader):
    text = (ROOT / page).read_text(encoding="utf-8")
    spans = [" ".join(span.split()) for span in re.findall(r"`((?:\w+=\S+ )?anymps [^`…]+)`", text)]
    lines = [re.split(r"  +[a-z]", line)[0] for line in text.splitlines() if re.match(r"(\w+=\S+ )?build/bin/anymps [^…>]*$", line)]
    for command in spans + lines:
        if command in ("anymps run", "anymps bench"):  # spoken of, not meant to be typed
            continue
        done = reader(command.replace("softshrink", "softmax"))
        assert done.returncode == 0, (command, done.stderr)


def test_the_readmes_commands(reader):
    rows = re.findall(r"^\| `(anymps [^`]+)` \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert len(rows) > 10
    for command in rows:
        if "…" in command or "export-pte" in command or "serve" in command:
            continue
        if "model.mps" in command and "convert" in command:
            assert reader("anymps compile model.onnx -o model.mps").returncode == 0
            command = command.replace("-o model.onnx", "-o other.onnx")
        done = reader(command)
        assert done.returncode == 0, (command, done.stderr)
