# SPDX-License-Identifier: Apache-2.0
"""The list of ops to measure: read, checked entry by entry, with the line of what is wrong.

    made: {torch: 2.15.0, os: "macOS 15.1, arm64", ...}    # by scripts/sync_requests.py
    ops:
      - op: isin
        demand: 224
        links: [https://github.com/pytorch/pytorch/issues/77764#issuecomment-1]
        shapes: [[1024], [16384]]
        dtypes: [float32, int64]
      - trace                                               # a name is enough
"""

import re
from dataclasses import asdict, dataclass, field

import yaml

DTYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64")
MOST_ELEMENTS = 1 << 26
OP_NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)?")


@dataclass
class Target:
    op: str
    demand: int = 1
    links: list = field(default_factory=list)
    shapes: list = field(default_factory=list)
    dtypes: list = field(default_factory=lambda: ["float32"])

    def asdict(self):
        return asdict(self)


class Wrong(Exception):
    """Something in the file is not as it must be; the message starts with the file and the line."""


def _is_shape(value):
    if not isinstance(value, list) or not all(type(size) is int and size >= 0 for size in value):
        return False
    elements = 1
    for size in value:
        elements *= size
    return elements <= MOST_ELEMENTS


CHECKS = {
    "op": (lambda v: isinstance(v, str) and OP_NAME.fullmatch(v), "the name of an ATen op, such as isin or isin.Tensor_Tensor"),
    "demand": (lambda v: type(v) is int and v >= 0, "a whole number from 0 on"),
    "links": (
        lambda v: isinstance(v, list) and all(isinstance(i, str) and re.match(r"https?://", i) for i in v),
        "a list of addresses",
    ),
    "shapes": (
        lambda v: isinstance(v, list) and all(map(_is_shape, v)),
        f"a list of shapes such as [[64, 64]], each of {MOST_ELEMENTS} elements at most",
    ),
    "dtypes": (lambda v: isinstance(v, list) and v and all(i in DTYPES for i in v), "a list of " + ", ".join(DTYPES)),
}


def _entry(node, where):
    value = yaml.SafeLoader("").construct_document(node) if node else None
    if isinstance(value, str):
        value = {"op": value}
    if not isinstance(value, dict) or "op" not in value:
        raise Wrong(f"{where(node)}: an entry is the name of an op, or has a field 'op'")
    fields = {key.value: item for key, item in node.value} if isinstance(node, yaml.MappingNode) else {"op": node}
    for name, given in value.items():
        if name not in CHECKS:
            raise Wrong(f"{where(fields.get(name, node))}: unknown field {name!r}; there are {', '.join(CHECKS)}")
        check, expected = CHECKS[name]
        if not check(given):
            raise Wrong(f"{where(fields[name])}: {name!r} must be {expected}, not {given!r}")
    return Target(**value)


def load(path):
    """(targets, problems): entries that are wrong do not stop the others. Raises Wrong where nothing can be read."""

    def where(node):
        return f"{path}:{node.start_mark.line + 1}"

    try:
        with open(path, encoding="utf-8") as file:
            root = yaml.compose(file, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        began = f", {error.context} of line {error.context_mark.line + 1}" if error.context_mark else ""
        raise Wrong(f"{path}:{error.problem_mark.line + 1}: {error.problem}{began}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Wrong(f"{path}: {error}") from None
    parts = {key.value: node for key, node in root.value} if isinstance(root, yaml.MappingNode) else {}
    unknown = sorted(set(parts) - {"made", "ops"})
    if unknown:
        raise Wrong(f"{where(parts[unknown[0]])}: unknown field {unknown[0]!r}; there are made, ops")
    if not isinstance(parts.get("ops"), yaml.SequenceNode):
        raise Wrong(f"{path}:1: there is no list 'ops'")
    targets, problems, seen = [], [], set()
    for node in parts["ops"].value:
        try:
            target = _entry(node, where)
            if target.op in seen:
                raise Wrong(f"{where(node)}: {target.op} is in the list already")
            seen.add(target.op)
            targets.append(target)
        except (Wrong, yaml.YAMLError) as error:
            problems.append(str(error))
    return targets, problems
