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

    def source(name):
        return (sources / name).read_text(encoding="utf-8")

    ops, reference = sources / "ops/elementwise/activation.cc", sources / "drivers/reference/elementwise/activation.cc"
    record, short = take(blocks, f"OP({OP})"), take(blocks, f"ACTIVATION({OP}, k").replace(OP, OTHER, 1)
    gradient = take(blocks, f"GRADIENT({OP})")
    write(target / "record.cc", above(ops, "ACTIVATION(relu") + record + short + "\n" + gradient + gradient.replace(OP, OTHER, 1) + end)
    kernel, long = take(blocks, f"ACTIVATION_ALPHA({OP})"), take(blocks, f"REFERENCE({OP})").replace(OP, OTHER, 1)
    write(target / "reference.cc", above(reference, "REFERENCE(relu)") + kernel + long + end)
    function = take(blocks, f"inline constexpr auto {OP}")
    write(target / "semantics/activation_formulas.h", insert(source("semantics/activation_formulas.h"), "inline constexpr auto hard_swish", function))

    body, line = take(blocks, f"ANYMPS_UNARY({OP}").split("…\n")
    simd = insert(source("drivers/cpu/elementwise/elementwise_simd.cc"), "ANYMPS_UNARY(leaky_relu", body)
    # Its own text is what Highway compiles for each instruction set: by the path of this copy.
    simd = simd.replace('"drivers/cpu/elementwise/elementwise_simd.cc"', f'"{target / "elementwise_simd.cc"}"')
    write(target / "elementwise_simd.cc", insert(simd, "ADD_UNARY(leaky_relu", line))
    write(target / "elementwise_plain.cc", insert(source("drivers/cpu/elementwise/elementwise_plain.cc"), "ACTIVATION(leaky_relu", take(blocks, f"ACTIVATION({OP}, 1")))
    names = source("drivers/cpu/elementwise/elementwise.cc")
    if names.count('"thresholded_relu"})') != 1:
        raise SystemExit("apply_guide: where is the list at the end of elementwise.cc?")
    write(target / "elementwise.cc", names.replace('"thresholded_relu"})', f'"thresholded_relu", "{OP}"}})'))
    write(target / "factory.cc", '#include <algorithm>\n#include "drivers/kernel.h"\n#include "drivers/cpu/threads.h"\nnamespace anymps::cpu {\n'
          + take(blocks, "KernelPtr make_it").replace(f'"{OP}"', f'"{OTHER}"') + "\n}  // namespace anymps::cpu\n")
    write(target / "importer.cc", insert(source("formats/onnx/read/ops/elementwise.cc"), "const double bias = c.f(", take(blocks, "if (bias == lambd")))
    write(target / "table_line.inc", take(blocks, f'{{"{OP}"'))

    everything = "".join(path.read_text(encoding="utf-8") for path in sorted(sources.rglob("*.cc")))
    for block in blocks:
        shown = re.sub(r" +//.*", "", block)
        if shown not in re.sub(r" +//.*", "", everything):
            raise SystemExit(f"apply_guide: the page shows this, and no file of {sources} has it:\n{block}")


main(*map(Path, sys.argv[1:]))
