# SPDX-License-Identifier: Apache-2.0
"""Writes ops.pyi, the types of the functions that anymps/ops.py makes from the op table.

    make_stubs.py PACKAGE_DIR OUTPUT

Only the extension is imported: the package itself needs numpy, which a build environment may lack."""
import importlib.util
import json
import keyword
import sys
from pathlib import Path

TYPES = {"int": "int", "bool": "bool", "float": "float", "string": "str", "ints": "Sequence[int]",
         "floats": "Sequence[float]", "dtype": "DTypeLike",
         "graph": "Body"}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The ops as functions. Generated from the op table."""
from typing import Any, Literal, Sequence

DTypeLike = Any
"""A dtype: 'f32', 'float32', numpy.float32, torch.float32, …"""
Body = Any
"""A graph, or a function of values that gives values."""
Operand = Any
"""A value of a graph, an array, a tensor, a number or a list. Values give values; arrays give arrays."""

'''


def load_core(package):
    (path,) = Path(package).glob("_core*.so")
    spec = importlib.util.spec_from_file_location("anymps._core", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def safe(name):
    return name + "_" if keyword.iskeyword(name) else name


def default(attr):
    text = attr["default"]
    if attr["kind"] in ("ints", "floats"):
        return "(" + text.strip("[]") + ("," if text not in ("[]",) and "," not in text else "") + ")"
    if attr["kind"] == "bool":
        return text.capitalize()
    if attr["kind"] == "dtype":
        return repr(text)
    if attr["kind"] == "float" and text.lstrip("-") in ("inf", "nan"):
        return "..."
    return text


def function(record):
    inputs, attrs = record["inputs"], record["attrs"]
    names = {spec["name"] for spec in inputs}
    positional, keywords, star = [], [], "*"
    for i, spec in enumerate(inputs):
        name = safe(spec["name"])
        if spec["variadic"]:
            star = f"*{name}: Operand"
        elif any(not s["optional"] and not s["variadic"] for s in inputs[i:]):
            positional.append(f"{name}: Operand")
        else:
            positional.append(f"{name}: Operand | None = None")
    for attr in attrs:
        if attr["name"] not in names:
            kind = TYPES[attr["kind"]]
            if attr["choices"]:
                kind = f"Literal[{', '.join(map(repr, attr['choices']))}]"
            elif attr["kind"] == "ints":
                kind += " | int"
            keywords.append(f"{safe(attr['name'])}: {kind}" + ("" if attr["required"] else f" = {default(attr)}"))
    many = len(record["outputs"]) > 1 or record["variadic_outputs"]
    if many:
        keywords.append("outputs: int | None = None")
    keywords.append('name: str = ""')
    doc = record["doc"].replace("\\", "\\\\").replace('"""', "'''")
    return (f"def {safe(record['name'])}({', '.join([*positional, star, *keywords])}) -> Any:\n"
            f'    """{doc}"""\n')


def main():
    package, output = sys.argv[1:]
    table = json.loads(load_core(package).ops_text("json"))
    public = [r for r in table if not r["internal"]]
    Path(output).write_text(HEAD + "\n".join(function(record) for record in public), encoding="utf-8")


if __name__ == "__main__":
    main()
