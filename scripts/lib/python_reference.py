#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the Python reference from the package's own docstrings and signatures.

    python_reference.py OUTPUT_DIR        reference.md and ops.md; the package `anymps` must be importable
"""
import html
import inspect
import json
import sys
from pathlib import Path

import anymps
from anymps import _core


def text_of(thing):
    """A docstring as Markdown: `Args:` blocks become lists, indented examples become code."""
    lines = inspect.cleandoc(thing.__doc__ or "").splitlines()
    out, block = [], None
    for line in lines:
        if line.strip() in ("Args:", "Returns:"):
            block = line.strip()
            out += ["", f"**{block}**", ""]
        elif block and line.startswith("    "):
            name, colon, rest = line.strip().partition(": ")
            out.append(f"- `{name}`: {html.escape(rest)}" if colon else f"- {html.escape(line.strip())}")
        elif block and line.strip():
            block = None
            out += ["", html.escape(line)]
        else:
            out.append(line if line.startswith("    ") else html.escape(line, quote=False))
    return "\n".join(out).strip()


def signature_of(thing):
    try:
        return str(inspect.signature(thing))
    except (TypeError, ValueError):
        return "(…)"


def entry(title, signature, body, level):
    return f"{'#' * level} {title}\n\n```python\n{signature}\n```\n\n{body}\n\n"


def class_page(cls, ops):
    text = f"### {cls.__name__}\n\n{text_of(cls)}\n\n"
    for name, member in sorted(vars(cls).items()):
        if name.startswith("_") or name in ops:
            continue
        if isinstance(member, (classmethod, staticmethod)):
            member = member.__func__
        if isinstance(member, property) or not callable(member):
            doc = text_of(member)
            text += f"- `{cls.__name__}.{name}`{': ' + doc if doc else ''}\n"
    text += "\n"
    for name, member in sorted(vars(cls).items()):
        member = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if not name.startswith("_") and name not in ops and callable(member):
            text += entry(f"{cls.__name__}.{name}", f"{name}{signature_of(member)}", text_of(member), 4)
    return text


def reference():
    ops = set(anymps.ops.__all__)
    things = {name: getattr(anymps, name) for name in anymps.__all__ if name != "ops"}
    errors = [t for t in things.values() if inspect.isclass(t) and issubclass(t, Exception)]
    classes = [t for t in things.values() if inspect.isclass(t) and t not in errors]
    functions = {n: t for n, t in things.items() if not inspect.isclass(t)}
    text = "# Python reference\n\n" + inspect.cleandoc(anymps.__doc__).splitlines()[0] + "\n\n## Functions\n\n"
    for name, function in sorted(functions.items()):
        text += entry(f"anymps.{name}", f"anymps.{name}{signature_of(function)}", text_of(function), 3)
    text += "## Classes\n\n" + "".join(class_page(cls, ops) for cls in sorted(classes, key=lambda c: c.__name__))
    text += "## Exceptions\n\n| exception | is also | |\n|---|---|---|\n"
    for error in errors:
        also = ", ".join(b.__name__ for b in error.__bases__ if b is not anymps.Error)
        text += f"| {error.__name__} | {also} | {error.__doc__} |\n"
    return text


def op_pages():
    records = json.loads(_core.ops_text("json"))
    families = {record["name"]: record["family"] for record in records}
    grouped = {}
    for name in anymps.ops.__all__:
        grouped.setdefault(families.get(name) or families[name.removesuffix("_")], []).append(name)
    text = "# Ops\n\n" + inspect.cleandoc(anymps.ops.__doc__) + "\n\n"
    for family, names in sorted(grouped.items()):
        text += f"## {family}\n\n"
        for name in sorted(names):
            function = getattr(anymps.ops, name)
            text += entry(name, f"{name}{signature_of(function)}", text_of(function), 3)
    return text


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    (out / "reference.md").write_text(reference(), encoding="utf-8")
    (out / "ops.md").write_text(op_pages(), encoding="utf-8")


if __name__ == "__main__":
    main()
