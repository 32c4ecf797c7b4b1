# SPDX-License-Identifier: Apache-2.0
"""The table as text: what can be said of it without PyTorch."""
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "doors" / "torch" / "csrc" / "table"
LITERAL = r'"(?:[^"\\]|\\.)*"'
LITERALS = rf"{LITERAL}(?:\s*{LITERAL})*"  # a text, perhaps in several pieces
ROW = re.compile(rf"^(OP|DEFINE)\(({LITERALS}),\s*({LITERALS}),\s*({LITERALS})\)$", re.M)


def text(literals):
    return "".join(piece[1:-1] for piece in re.findall(LITERAL, literals))


def rows(kind):
    for file in sorted(KERNELS.glob("*.inc")):
        for found in ROW.findall(file.read_text()):
            if found[0] == kind:
                yield file.name, *map(text, found[1:])


def test_every_line_is_part_of_a_row():
    for file in sorted(KERNELS.glob("*.inc")):
        rest = re.sub(r"^(//.*|#include .*)$", "", ROW.sub("", file.read_text()), flags=re.M)
        assert rest.strip() == "", f"{file.name}: {rest.strip()[:200]}"


def test_an_op_has_one_row():
    graphs = ("views.inc", "composed.inc")  # rows for these alone
    names = Counter((name, file in graphs) for file, all_names, _, _ in rows("OP") for name in all_names.split())
    assert len(names) > 500
    assert [name for name, count in names.items() if count > 1] == []


def test_a_name_is_defined_once():
    names = Counter(name for _, name, _, _ in rows("DEFINE"))
    names.update(re.findall(r'^    \{"(\w+)", "', (ROOT / "doors" / "lowering" / "definitions.cc").read_text(), re.M))
    for file in (ROOT / "doors" / "lowering").glob("*_functions.cc"):  # these would win
        found = re.findall(r'\{"(\w+)", \w+\}', file.read_text().split("const Functions ", 1)[1])
        assert found, file
        names.update(found)
    assert [name for name, count in names.items() if count > 1] == []


def test_the_guide_shows_rows_that_are_there():
    shown = [found for found in ROW.findall((ROOT / "docs" / "guides" / "add_a_torch_op.md").read_text())]
    there = {(kind, names, marks, body) for kind in ("OP", "DEFINE") for _, names, marks, body in rows(kind)}
    assert len(shown) == 2
    for kind, *parts in shown:
        assert (kind, *map(text, parts)) in there, parts
