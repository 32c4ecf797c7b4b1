#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the hand-written files that name each op.

    op_files.py > docs/generated/op_files.md

The page says what counts as naming an op; tests/docs/test_house.py holds the medians to their bounds.
"""
import re
import statistics
import sys

from tree import ROOT, sources

PAGES = ROOT / "docs/generated"
# The exporter's names are torch's and those of Apple's schema; the tables of a framework's kernels and the language that they
# are written in list that framework's kernels, not the engine's ops.
FOREIGN = ("doors/executorch/anymps_executorch/", "doors/lowering/", "doors/paddle/", "doors/torch/")
# Comments and other text that is passed over; string literals, brackets, words, other characters.
CPP = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>\w*)\(.*?\)(?P=mark)"|'(?:[^'\\\n]|\\.)*'|"(?P<literal>(?:[^"\\\n]|\\.)*)\""""
                 r"|(?P<bracket>[()\[\]{}])|(?P<word>[A-Za-z_]\w*)|(?P<other>[^\s\w])", re.S)
PYTHON = re.compile(r'''\#[^\n]*|"""(?:.*?)"""|["'](?P<literal>(?:[^"'\\\n]|\\.)*)["']'''
                    r"|(?P<bracket>[()\[\]{}])|(?P<word>[A-Za-z_]\w*)|(?P<other>[^\s\w])", re.S)
NOT_A_CALL = {"if", "for", "while", "switch", "return", "in", "not", "and", "or"}
FORMULA = re.compile(r"^(?:inline |constexpr |static )*(?:auto|double|float|bool|T) (\w+)(?: = |\()", re.M)
DEFINITIONS = {"ANYMPS_PATCHED"}  # macros that define a function of a math library and register nothing
MACRO = re.compile(r"^#define (\w+)\(.*?(?<!\\)\n", re.M | re.S)
CALL = re.compile(r"^([A-Z][A-Z0-9_]*)\((\w+)", re.M)
RULE = re.compile(r"\b(?:COMPLEX_|ANYMPS_)?GRADIENT\(|\.gradient\(")
RECORD = re.compile(r"\bOP\(")


def bracket_kind(before, word):
    """What `word(` opens; `before` is the token in front of it."""
    if not re.fullmatch(r"[A-Za-z_]\w*", word or "") or word in NOT_A_CALL:
        return "call" if word == ">" else "group"
    if word.isupper():
        return "group" if word in DEFINITIONS else "macro"
    declares = word[0].isupper() or re.fullmatch(r"[A-Z]\w*", before or "") or word.startswith("register")
    return "registration" if declares else "call"


def mentions(text, ops, tokens):
    """(names, uses): the ops that the text names, and those that it hands to functions only."""
    names, uses, open_brackets, before, last = set(), set(), [], None, None
    for token in tokens.finditer(text):
        groups = token.groupdict()
        if groups["literal"] is not None:
            if groups["literal"] in ops:
                (uses if "call" in open_brackets else names).add(groups["literal"])
            word = "literal"
        elif groups["bracket"]:
            word = groups["bracket"]
            if word in "([{":
                open_brackets.append(bracket_kind(before, last) if word == "(" else "group")
            elif open_brackets:
                open_brackets.pop()
        elif groups["word"]:
            word = groups["word"]
            if last == "(" and open_brackets[-1:] == ["macro"] and word in ops:
                names.add(word)
        elif groups["other"]:
            word = groups["other"]
        else:
            continue  # a comment
        before, last = last, word
    return names, uses - names


def macros_of(text):
    return {found[1]: found[0] for found in MACRO.finditer(text)}


def expanded(macro, bodies):
    """The text of a macro and of those that it is made of."""
    body = bodies.get(macro, "")
    used = set(re.findall(r"\b[A-Z][A-Z0-9_]*(?=\()", body.partition(")")[2])) - {macro}
    return body + "".join(expanded(name, bodies) for name in sorted(used & set(bodies)))


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


class Tree:
    """What the files say of the ops: `names` and `uses` map an op to files; the rest are sets of ops."""

    def __init__(self):
        reference = (PAGES / "ops.md").read_text(encoding="utf-8").replace("\\_", "_")
        support = (PAGES / "support.md").read_text(encoding="utf-8").replace("\\_", "_")
        self.ops = re.findall(r"^### (\w+)$", reference, re.M)
        self.names, self.uses = {op: set() for op in self.ops}, {op: set() for op in self.ops}
        self.kernels = {op for op, cpu in re.findall(r"^\| (\w+) \| ([^|]*?) *\|", support, re.M) if cpu not in ("", "reference", "cpu")}
        self.gradients, self.elementwise, self.onnx_names = set(), set(), set()
        self.macros = {}  # of headers: what they stand for
        for path in sources("src"):
            if path.as_posix().startswith("src/ops/") and path.suffix == ".h":
                self.macros |= macros_of((ROOT / path).read_text(encoding="utf-8"))
        for path in sources("src", "doors"):
            file, text = path.as_posix(), (ROOT / path).read_text(encoding="utf-8")
            if file.startswith(FOREIGN):
                continue
            names, uses = mentions(text, set(self.ops), PYTHON if path.suffix == ".py" else CPP)
            if file.startswith("src/semantics/"):
                names |= set(FORMULA.findall(text)) & set(self.ops)
            for op in names:
                self.names[op].add(file)
            for op in uses - names:
                self.uses[op].add(file)
            if file.startswith("src/ops/") and path.suffix == ".cc":
                self.read_records(without_comments(text))
        # Reading ONNX is making nodes: a converter names its op by using it, and counts as one file.
        self.read = {op for op in self.ops if op in self.onnx_names or any(is_reader(file) for file in self.names[op] | self.uses[op])}
        self.write = {op for op in self.ops if op in self.onnx_names or any(is_writer(file) for file in self.names[op] | self.uses[op])}

    def read_records(self, text):
        """Gradients and facts of records, as the file writes them or its macros do."""
        bodies = self.macros | macros_of(text)
        calls = list(CALL.finditer(text))
        for call, following in zip(calls, [*calls[1:], None]):
            macro, op = call.groups()
            if op not in self.names:
                continue
            body = expanded(macro, bodies) + text[call.start():following and following.start()].split(";\n")[0]
            if RULE.search(body):
                self.gradients.add(op)
            if RECORD.search(body):
                self.elementwise |= {op} if "kElementwise" in body else set()
                self.onnx_names |= {op} if ".onnx(" in body else set()

    def count(self, op):
        named_by_use = op not in self.onnx_names and not any(map(is_reader, self.names[op])) and any(map(is_reader, self.uses[op]))
        return len(self.names[op]) + named_by_use

    def complete(self):
        """Ops with a reference kernel (all have one), a CPU kernel, a gradient, and ONNX both ways."""
        return [op for op in self.ops if op in self.kernels & self.gradients & self.read & self.write]

    def median(self, ops):
        return statistics.median(map(self.count, ops))


def is_reader(file):
    return file.startswith("src/formats/onnx/") and "read" in file


def is_writer(file):
    return file.startswith("src/formats/onnx/") and "write" in file


def short(files):
    return ", ".join(f"`{file.removeprefix('src/')}`" for file in sorted(files))


def page(tree):
    complete, elementwise = tree.complete(), [op for op in tree.ops if op in tree.elementwise]
    lines = [
        "# Where each op is named", "",
        "Generated by `scripts/lib/op_files.py` from the files under `src/` and `doors/`; tests and generated files do not count.", "",
        "A file **names** an op if, outside of comments, the op's name stands in it",
        "",
        "- as the first argument of a macro that registers or lists it: `OP(gelu)`, `REFERENCE(gelu)`, `GRADIENT(gelu)`, `UNARY(gelu, …)`;",
        '- as a whole string literal in a registration, a table, a list or a comparison: `KernelRegistrar("cpu", "softmax", …)`,',
        '  `{"gelu", gelu}`, `op.name == "gelu"`;',
        "- in `src/semantics/` as the name of a function.",
        "",
        'A file that only hands the name to a function **uses** the op: `graph.add("gelu", …)`, `made_by(value, "softmax")`. Such files make',
        "or look for nodes, as any program may, and need no change when the op does. Reading ONNX consists of making nodes: an op that is",
        "only used there, and whose record does not give its ONNX name (`.onnx(…)`), counts with one file more.",
        "",
        "| ops | how many | median of files that name one | most |",
        "|---|--:|--:|--:|",
    ]
    for words, ops in (("with reference and CPU kernel, gradient, ONNX both ways", complete), ("elementwise", elementwise), ("all", tree.ops)):
        lines.append(f"| {words} | {len(ops)} | {tree.median(ops):g} | {max(map(tree.count, ops))} |")
    lines += ["", "| op | files | named in | used by |", "|---|--:|---|--:|"]
    for op in sorted(tree.ops):
        name = op.replace("_", "\\_")
        lines.append(f"| {name} | {tree.count(op)} | {short(tree.names[op])} | {len(tree.uses[op])} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(Tree()))
