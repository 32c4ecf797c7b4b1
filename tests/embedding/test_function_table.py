# SPDX-License-Identifier: Apache-2.0
"""The function table (amps_get_api) has every function of the header, in an order that stays. That the functions work is
function_table.c's to show."""
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ANYMPS_BUILD_DIR", ROOT / "build"))


def header_functions():
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "include" / "anymps" / "anymps.h").read_text(), flags=re.S)
    return re.findall(r"AMPS_API\b[^;(]*?\bamps_(\w+)\s*\(", text), re.findall(r"\bX\((\w+)\)", text.split("#define AMPS_API_FUNCTIONS(X)")[1])


def test_the_table_has_every_function():
    functions, table = header_functions()
    assert len(table) > 120 and sorted(table) == sorted(set(functions) - {"get_api"})


def test_the_table_only_grows():
    _, table = header_functions()
    known = [line for line in (ROOT / "tests" / "data" / "function_table.txt").read_text().splitlines() if not line.startswith("#")]
    assert table == known, "functions are added at the end, here and in tests/data/function_table.txt"


def test_the_program_of_the_guide(tmp_path):
    (program,) = re.findall(r"```c\n(.*?)```", (ROOT / "docs" / "guides" / "embedding.md").read_text(), re.S)
    (tmp_path / "guide.c").write_text(program)
    subprocess.run(["gcc", "-Wall", "-Werror", f"-I{ROOT / 'include'}", tmp_path / "guide.c", "-o", tmp_path / "guide"], check=True)
    done = subprocess.run([tmp_path / "guide"], capture_output=True, text=True, env={"LD_LIBRARY_PATH": str(BUILD / "lib")}, timeout=60)
    assert done.returncode == 0 and done.stdout.strip(), done.stdout + done.stderr
