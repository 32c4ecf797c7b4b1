#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints schemas.inc: the element types of the ONNX ops that the writers and the records of the op table name, from the
schemas of the `onnx` wheel. Run it after one of them began to use another op:

    python src/formats/onnx/schema/make_schemas.py > src/formats/onnx/schema/schemas.inc
"""
import re
from pathlib import Path

import onnx

SOURCES = Path(__file__).resolve().parents[3]
WRITERS = SOURCES / "formats" / "onnx" / "write"
OPSET = int(re.search(r"kOpset = (\d+)", (WRITERS / "export.cc").read_text())[1])
TYPES = {"float": "f32", "float16": "f16", "double": "f64", "bfloat16": "bf16", "bool": "bool", "string": "string",
         "complex64": "c64", "complex128": "c128", "float8e4m3fn": "f8e4m3", "float8e5m2": "f8e5m2", "float8e4m3fnuz": "f8e4m3fnuz",
         "float8e5m2fnuz": "f8e5m2fnuz", "float8e8m0": "f8e8m0", "float4e2m1": "f4e2m1",
         **{f"int{n}": f"i{n}" for n in (2, 4, 8, 16, 32, 64)}, **{f"uint{n}": f"u{n}" for n in (2, 4, 8, 16, 32, 64)}}
ORDER = list(TYPES.values())


def elements(types):
    """The engine's names of the elements of tensors, also of those in sequences and optionals."""
    found = {TYPES.get(re.search(r"tensor\((\w+)\)", t)[1]) for t in types if "tensor(" in t}
    return ",".join(sorted(found - {None}, key=ORDER.index))


def row(schema):
    constraints = {c.type_param_str: elements(c.allowed_type_strs) for c in schema.type_constraints}
    used = {}

    def variables(parameters):
        names = []
        for p in parameters:
            name = p.type_str
            if name not in constraints:  # a type instead of a variable
                constraints[name] = elements([name])
            used[name] = name if name.isidentifier() else elements([name])
            variadic = p.option == onnx.defs.OpSchema.FormalParameterOption.Variadic
            names.append(used[name] + ("" if not variadic else "*" if p.is_homogeneous else "~"))
        return " ".join(names)

    inputs, outputs = variables(schema.inputs), variables(schema.outputs)
    types = " ".join(f"{used[name]}={constraints[name]}" for name in used)
    return f'{{"{schema.name}", "{inputs}", "{outputs}", "{types}"}},'


def main():
    words = set()
    for path in WRITERS.rglob("*.cc"):
        words |= set(re.findall(r"\b[A-Z]\w+\b", path.read_text()))
    for path in (SOURCES / "ops").rglob("*.cc"):
        words |= set(re.findall(r"\.onnx\(\"(\w+)\"", path.read_text()))
    print("// Made by make_schemas.py; see there.")
    for name in sorted(words):
        if onnx.defs.has(name, max_inclusive_version=OPSET, domain=""):
            print(row(onnx.defs.get_schema(name, OPSET)))


if __name__ == "__main__":
    main()
