# SPDX-License-Identifier: Apache-2.0
"""docs/one_op.md: the files that it links to are there, and each has the lines that are quoted from it."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "one_op.md"
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
SUFFIXES = (".cc", ".h", ".hpp", ".inc", ".py")
CODE = re.compile(r"^```(?:cpp|python)\n(.*?)^```\n", re.M | re.S)


def quotes():
    """(file, quoted text) for each block of code: the file is the one linked last before it."""
    file = None
    for i, part in enumerate(CODE.split(PAGE.read_text(encoding="utf-8"))):
        if i % 2:
            yield file, part
        else:
            file = ([target for target in LINK.findall(part) if target.endswith(SUFFIXES)] or [file])[-1]


def holders(text):
    """The files that have the first line of a quotation: where it may have moved to."""
    line = text.splitlines()[0]
    files = [path for folder in ("src", "doors", "include") for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return sorted(str(path.relative_to(ROOT)) for path in files if line in path.read_text(encoding="utf-8").splitlines())


def test_the_links_lead_somewhere():
    targets = LINK.findall(CODE.sub("", PAGE.read_text(encoding="utf-8")))
    missing = [target for target in targets if not (PAGE.parent / target).is_file()]
    assert len(targets) > 25
    assert not missing, missing


def test_the_quotations_are_in_their_files():
    found = list(quotes())
    assert len(found) >= 15
    for file, text in found:
        # A statement may go on in the file where the quotation ends.
        assert text.rstrip("\n") in (PAGE.parent / file).read_text(encoding="utf-8"), f"{file} does not have this; files with its first line: {holders(text)}\n{text}"


def test_all_layers_are_shown():
    shown = {file.removeprefix("../") for file, _ in quotes()}
    for layer in ("src/ops/", "src/semantics/", "src/drivers/reference/", "src/drivers/cpu/", "src/passes/", "src/formats/onnx/", "src/formats/executorch/",
                  "include/anymps/", "doors/python/"):
        assert any(file.startswith(layer) for file in shown), layer
