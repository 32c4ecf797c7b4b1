# SPDX-License-Identifier: Apache-2.0
"""The hand-written sources under src/ and doors/, and what they include: read by house.py, op_files.py and their tests."""
import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = (".h", ".hpp", ".c", ".cc", ".cpp", ".inc", ".py", ".proto")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
OUTPUTS = {"cmake-out", "__pycache__"}  # doors/executorch builds into the first
PUBLIC = "include/anymps"
GENERATED = {"include/anymps/ops.hpp", "src/formats/onnx/schema/schemas.inc"}


def sources(*folders, root=ROOT):
    """The hand-written source files under these folders, as paths relative to the root, sorted."""
    found = (path.relative_to(root) for folder in folders for path in (root / folder).rglob("*") if path.suffix in SUFFIXES)
    return sorted(path for path in found if not OUTPUTS & set(path.parts) and path.as_posix() not in GENERATED)


def folder_of(path):
    """src/drivers/cpu/isa.cc -> src/drivers: the box of the picture that a file belongs to."""
    return "/".join(path.parts[:2])


def includes(root=ROOT):
    """Folder -> the other folders that its files include."""
    arrows = {folder_of(path): set() for path in sources("src", "doors", "include", root=root)}
    for path in sources("src", "doors", root=root):
        for name in INCLUDE.findall((root / path).read_text(encoding="utf-8")):
            first, own = name.split("/")[0], folder_of(path)
            for target in (f"src/{first}", f"doors/{first}"):
                if target != own and target in arrows and (root / target.split("/")[0] / name).exists():
                    arrows[own].add(target)
            if first == "anymps":
                arrows[own].add(PUBLIC)
    return arrows


def reachable(arrows, start):
    """What a folder may know: all that its arrows lead to, over any number of steps."""
    seen, waiting = set(), list(arrows[start])
    while waiting:
        folder = waiting.pop()
        if folder not in seen:
            seen.add(folder)
            waiting += arrows[folder]
    return seen


def reduced(arrows):
    """The same order with as few arrows as possible: none that others lead to as well."""
    if circle := [folder for folder in arrows if folder in reachable(arrows, folder)]:
        raise SystemExit(f"tree.py: these folders include each other: {', '.join(sorted(circle))}")
    return {folder: {to for to in targets if not any(to in reachable(arrows, other) for other in targets - {to})}
            for folder, targets in arrows.items()}


def declared(root=ROOT):
    """The arrows that tests/structure allows between the folders of src/."""
    module = ast.parse((root / "tests/structure/test_include_arrows.py").read_text(encoding="utf-8"))
    for statement in module.body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "ALLOWED":
            names = ast.literal_eval(statement.value)
            return {f"src/{folder}": {PUBLIC if to == "anymps" else f"src/{to}" for to in targets} for folder, targets in names.items()}
    raise SystemExit("tree.py: tests/structure/test_include_arrows.py declares no ALLOWED")
