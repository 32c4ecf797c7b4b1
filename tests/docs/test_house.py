# SPDX-License-Identifier: Apache-2.0
"""The order of the tree: the picture of its folders and the page of its ops are current, and what they show keeps its bounds."""
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIB = ROOT / "scripts" / "lib"
sys.path.insert(0, str(LIB))
import house  # noqa: E402
import op_files  # noqa: E402
import tree  # noqa: E402

MAX_FILES, MAX_LINES = 40, 500
DATA = ("tests/data/", "tests/fuzz/corpus/")


@pytest.fixture(scope="module")
def ops():
    return op_files.Tree()


@pytest.mark.parametrize("script, page", [("house.py", "house.svg"), ("op_files.py", "op_files.md")])
def test_generated_pages_are_current(script, page):
    made = subprocess.run([sys.executable, LIB / script], capture_output=True, text=True, check=True).stdout
    assert made == (ROOT / "docs/generated" / page).read_text(encoding="utf-8"), f"run: python3 scripts/lib/{script} > docs/generated/{page}"


def test_the_arrows_of_the_design_page():
    shown = house.text(tree.reduced(tree.includes()))
    assert f"```\n{shown}```\n" in (ROOT / "docs/design.md").read_text(encoding="utf-8"), f"docs/design.md is to show:\n{shown}"


def test_the_arrows_are_those_that_are_declared():
    included, allowed = tree.includes(), {tree.PUBLIC: set(), **tree.declared()}
    for folder in sorted(folder for folder in included if folder.startswith("src/")):
        assert tree.reachable(included, folder) == tree.reachable(allowed, folder), f"{folder}: what it includes, and what ALLOWED lets it"


def test_no_folder_includes_one_above_it():
    arrows = tree.includes()
    assert not [folder for folder in arrows if folder in tree.reachable(arrows, folder)]


def test_what_counts_as_naming_an_op():
    text = '''
      // "abs" in a comment
      ANYMPS_PATCHED(atan, x)
      OP(add).sample({"sub", {}});
      const KernelRegistrar kMul("cpu", "mul", make);
      const Table kTable = {{"div", &div}, {"exp", nullptr}};
      for (const char* op : {"log", "sin"}) use(op);
      if (op.name == "cos") return graph.add("tan", {x, graph.add("exp", {y})});
      auto text = R"(x = "atan")";
    '''
    ops = {"abs", "add", "sub", "mul", "div", "exp", "log", "sin", "cos", "tan", "atan"}
    names, uses = op_files.mentions(text, ops, op_files.CPP)
    assert names == {"add", "mul", "div", "exp", "log", "sin", "cos"} and uses == {"sub", "tan"}
    names, uses = op_files.mentions('FIRST = {"add": 1}  # "abs"\ncall("sub", ["mul"])\nif x in ("div", "log"): pass\n', ops, op_files.PYTHON)
    assert names == {"add", "div", "log"} and uses == {"sub", "mul"}


def test_the_ops_are_found(ops):
    assert {"conv", "softmax", "layer_norm", "tanh"} <= set(ops.complete()) and {"tanh", "add", "gelu"} <= ops.elementwise
    assert not {"softmax", "conv"} & ops.elementwise and "unique" not in ops.complete()
    for op in ops.ops:
        assert any(file.startswith("src/ops/") for file in ops.names[op]), op


@pytest.mark.parametrize("which, bound", [("complete", 6), ("elementwise", 3)])
def test_few_files_name_an_op(ops, which, bound):
    chosen = ops.complete() if which == "complete" else sorted(ops.elementwise)
    median = ops.median(chosen)
    counts = dict(sorted(Counter(map(ops.count, chosen)).items()))
    assert median <= bound, f"{len(chosen)} ops are named in {median:g} files (median), {bound} at most; ops by number of files: {counts}"


def test_no_folder_is_crowded():
    files = [path for folder in ("src", "doors", "tests") for path in (ROOT / folder).rglob("*") if path.is_file()]
    named = [path.relative_to(ROOT) for path in files]
    counts = Counter(path.parent.as_posix() for path in named if not tree.OUTPUTS & set(path.parts) and not path.as_posix().startswith(DATA))
    crowded = {folder: count for folder, count in counts.items() if count > MAX_FILES}
    assert not crowded, f"more than {MAX_FILES} files; give these folders an inner order: {crowded}"


def test_no_file_is_long():
    lines = {path.as_posix(): len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in tree.sources("src", "doors", "tests", "bench", "scripts")
             if not path.as_posix().startswith(DATA)}
    long = {path: count for path, count in lines.items() if count > MAX_LINES}
    assert not long, f"more than {MAX_LINES} lines; split these: {long}"
