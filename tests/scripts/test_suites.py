# SPDX-License-Identifier: Apache-2.0
"""scripts/lib/suites.py: what scripts/test counts as passed, failed and skipped."""
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
spec = importlib.util.spec_from_file_location("suites", ROOT / "scripts" / "lib" / "suites.py")
suites = importlib.util.module_from_spec(spec)
spec.loader.exec_module(suites)

MIXED = """[ RUN      ] A.one
[       OK ] A.one (0 ms)
[  SKIPPED ] A.two (0 ms)
[ RUN      ] A.three/3
a_test.cc:7: Failure
Expected: 3
[  FAILED  ] A.three/3, where GetParam() = 3 (1 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] A.two
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.three/3, where GetParam() = 3
"""
PYTEST = """def test_it():
>       assert sums == [1]
E       assert [nan] == [1]
E         At index 0 diff: nan != 1

tests/a.py:82: AssertionError"""
CRASH = "[ RUN      ] A.one\n[       OK ] A.one (0 ms)\n[ RUN      ] A.two\n"


@pytest.mark.parametrize("case, counts", [
    ('<testcase name="t" status="run"/>', (1, [], 0)),
    ('<testcase name="t" status="run"><failure message="x"/></testcase>', (0, ["t"], 0)),
    ('<testcase name="t" status="notrun"><skipped/></testcase>', (0, [], 1)),
    (f'<testcase name="t"><failure/><system-out>{MIXED}</system-out></testcase>',
     (1, ["t: A.three/3\n        a_test.cc:7: Failure\n        Expected: 3"], 1)),
    (f'<testcase name="t"><failure message="x">{PYTEST}</failure></testcase>',
     (0, ["t\n        assert [nan] == [1]\n        At index 0 diff: nan != 1\n        tests/a.py:82: AssertionError"], 0)),
    (f'<testcase name="t"><failure/><system-out>{CRASH}</system-out></testcase>',
     (1, ["t: t (ended before its cases did)"], 0)),
])
def test_counts(case, counts, tmp_path):
    (tmp_path / "r.xml").write_text(f"<testsuite>{case}</testsuite>")
    assert suites.count_junit(tmp_path / "r.xml") == counts


def test_last_line_and_status(tmp_path, capsys):
    table = tmp_path / "table"
    suites.add_row(table, "a", "1.0", 3, 0, 0)
    assert suites.show(table) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3 passed, 0 failed"
    suites.add_junit(table, "b", tmp_path / "missing.xml", "1.0", "8")
    assert suites.show(table) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "3 passed, 1 failed"
    suites.add_row(table, "c", "1.0", 0, 0, 2)
    suites.show(table)
    assert capsys.readouterr().out.splitlines()[-1] == "3 passed, 1 failed, 2 skipped"
