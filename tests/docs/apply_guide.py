#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows docs/guides/add_an_op.md: its code blocks are put where the page says they go, in a copy of the folders that they change.

    apply_guide.py PAGE SOURCES TARGET

What the page shows of other ops must be in the tree as it is.
"""
import re
import sys
from pathlib import Path

OP = "softshrink"
FOLDERS = ("ops/elementwise", "drivers/reference/elementwise", "drivers/cpu/elementwise")
FORMULAS = "semantics/activation_formulas.h"


def take(blocks, first_words):
    """The only block that begins so."""
    found = [block for block in blocks if block.lstrip().startswith(first_words)]
    if len(found) != 1:
        raise SystemExit(f"apply_guide: {len(found)} blocks of the page begin with '{first_words}'")
    blocks.remove(found[0])
    return found[0]


def before(text, line_start, addition):
    """With an addition above the only line that begins so."""
    if len(re.findall("^" + re.escape(line_start), text, re.M)) != 1:
        raise SystemExit(f"apply_guide: not one line begins with '{line_start}'")
    return re.sub("^" + re.escape(line_start), lambda found: addition + found[0], text, flags=re.M)


def write(path, text):
    """Only what changed, so that nothing is compiled again without need."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main(page, sources, target):
    files = [path for folder in FOLDERS for path in sorted((sources / folder).iterdir())] + [sources / FORMULAS]
    tree = {str(path.relative_to(sources)): path.read_text(encoding="utf-8") for path in files}
    blocks = re.findall(r"^```cpp\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)

    record = tree["ops/elementwise/activation.cc"]
    if "ops/gradient.h" not in record:
        record = before(record, "namespace anymps {", '#include "ops/gradient.h"\n\n')
    tree["ops/elementwise/activation.cc"] = before(record, "}  // namespace anymps", take(blocks, f"OP({OP})") + "\n")
    formulas = before(tree[FORMULAS], "// The ops that are one of these functions", take(blocks, f"inline constexpr auto {OP}") + "\n")
    line = take(blocks, f"ACTIVATION({OP}")
    tree[FORMULAS] = re.sub(r"^( *ACTIVATION\(leaky_relu, 1\) *)\\\n", lambda found: found[0] + line, formulas, flags=re.M)
    vectors = "drivers/cpu/elementwise/vector_functions.inc"
    tree[vectors] = before(tree[vectors], "UNARY(leaky_relu,", take(blocks, f"UNARY({OP}"))
    tree["drivers/cpu/elementwise/mine.cc"] = (
        '#include <algorithm>\n#include "drivers/cpu/threads.h"\n#include "drivers/kernel.h"\nnamespace anymps::cpu {\n'
        + take(blocks, "KernelPtr make_it") + "}  // namespace anymps::cpu\n")
    for name, text in tree.items():
        write(target / "src" / name, text)
    for path in (target / "src").rglob("*"):
        if path.is_file() and str(path.relative_to(target / "src")) not in tree:
            path.unlink()  # of an earlier tree
    write(target / "table_line.inc", take(blocks, f'{{"{OP}"'))

    everything = "".join(path.read_text(encoding="utf-8") for path in sorted(sources.rglob("*.cc")))
    for block in blocks:
        shown = re.sub(r" +//.*", "", block)
        if shown not in re.sub(r" +//.*", "", everything):
            raise SystemExit(f"apply_guide: the page shows this, and no file of {sources} has it:\n{block}")


main(*map(Path, sys.argv[1:]))
