#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows docs/guides/add_an_op.md: its code blocks are put where the page says they go, in a copy of the files that they change.

    apply_guide.py PAGE SOURCES TARGET

A file of the engine that is compiled together with others cannot be replaced by itself; there the blocks become files of their own, with
what stands above the first op in the original. The page shows the record and the reference kernel in two forms, a short one and what it
stands for: the other one of each is made under the name softshrink_short.
"""
import re
import sys
from pathlib import Path

OP, OTHER = "softshrink", "softshrink_short"


def code_blocks(page):
    return re.findall(r"^```cpp\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def take(blocks, first_words):
    """The only block that begins so."""
    found = [block for block in blocks if block.startswith(first_words)]
    if len(found) != 1:
        raise SystemExit(f"apply_guide: {len(found)} blocks of the page begin with '{first_words}'")
    blocks.remove(found[0])
    return found[0]


def insert(text, line_start, addition):
    """After the line that begins so."""
    found = re.search("^ *" + re.escape(line_start) + ".*\n", text, re.M)
    if not found:
        raise SystemExit(f"apply_guide: no line begins with '{line_start}'")
    return text[:found.end()] + addition + text[found.end():]


def above(path, line_start):
    """What a file of the engine has above its first op."""
    text = path.read_text(encoding="utf-8")
    return text[:text.index("\n" + line_start) + 1]


def write(path, text):
    """Only what changed, so that nothing is compiled again without need."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main(page, sources, target):
    blocks, end = code_blocks(page), "\n}  // namespace anymps\n"

    def source(name):
        return (sources / name).read_text(encoding="utf-8")

    ops, reference = sources / "ops/elementwise/activation.cc", sources / "drivers/reference/elementwise/activation.cc"
    record, short = take(blocks, f"OP({OP})"), take(blocks, f"ACTIVATION({OP}, k").replace(OP, OTHER, 1)
    write(target / "record.cc", above(ops, "ACTIVATION(relu") + record + short + end)
    kernel, long = take(blocks, f"ACTIVATION_ALPHA({OP})"), take(blocks, f"REFERENCE({OP})").replace(OP, OTHER, 1)
    write(target / "reference.cc", above(reference, "REFERENCE(relu)") + kernel + long + end)
    gradient = take(blocks, f"GRADIENT({OP})")
    write(target / "gradient.cc", above(sources / "ops/gradients/activation.cc", "GRADIENT(relu)") + gradient + gradient.replace(OP, OTHER, 1) + end)
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
    # The rest is shown from the tree, and must be there.
    everything = "".join(path.read_text(encoding="utf-8") for path in sorted(sources.rglob("*.cc")))
    for block in blocks:
        shown = re.sub(r" +//.*", "", block)
        if shown not in re.sub(r" +//.*", "", everything):
            raise SystemExit(f"apply_guide: the page shows this, and no file of {sources} has it:\n{block}")


main(*map(Path, sys.argv[1:]))
