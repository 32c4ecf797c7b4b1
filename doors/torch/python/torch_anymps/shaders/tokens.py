# SPDX-License-Identifier: Apache-2.0
"""A preprocessed shader as tokens that can be changed one by one and written out again with every line where it was."""

import re

_TOKEN = re.compile(
    r"""(?P<gap>\s*)
        (?P<text>
            \#[^\n]*                               # a line marker or a pragma
          | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'
          | \.?[0-9](?:[eEpP][+-]|[\w.'])*
          | [A-Za-z_]\w*
          | ::|->|\+\+|--|<<=|<<|<=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.
          | .
        )""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"[0-9.]")
_REAL = re.compile(
    r"((?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|0[xX][0-9a-fA-F.]+[pP][+-]?[0-9]+)(\w*)$"
)
_SHORT_REAL = re.compile(r"([0-9]+)(h|H|bf|BF)$")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
WORD = re.compile(r"[A-Za-z_]\w*$")


class Attribute:
    """`name(arguments)` between double brackets."""

    def __init__(self, name, arguments):
        self.name = name
        self.arguments = arguments  # tokens


def real_literal(text):
    """A literal as C++ has it: one without suffix is a float in Metal, `h` and `bf` make a half and a bfloat."""
    match = _REAL.match(text) or _SHORT_REAL.match(text)
    if match is None:
        return text
    digits, suffix = match.groups()
    if "." not in digits and "e" not in digits.lower() and "p" not in digits.lower():
        digits += ".0"
    if suffix in ("", "f", "F"):
        return digits + "f"
    if suffix in ("h", "H"):
        return f"half({digits}f)"
    if suffix in ("bf", "BF"):
        return f"bfloat({digits}f)"
    return text


class Tokens:
    """`text` and the white space before each, `gap`; `mate` joins brackets; `attributes` stand before a token."""

    def __init__(self, source):
        self.text, self.gap = [], []
        for match in _TOKEN.finditer(source):
            self.gap.append(match["gap"])
            self.text.append(match["text"])
        self._take_attributes()
        self._match_brackets()
        self.after = {}  # token -> text to write behind it
        for i, text in enumerate(self.text):
            if _NUMBER.match(text):
                self.text[i] = real_literal(text)

    def _take_attributes(self):
        text, gap, self.attributes = [], [], {}
        i, lines = 0, ""
        while i < len(self.text):
            opens = self.text[i] == "[" and i + 1 < len(self.text) and self.text[i + 1] == "[" and not self.gap[i + 1]
            if not opens:
                text.append(self.text[i])
                gap.append(lines + self.gap[i])
                lines = ""
                i += 1
                continue
            end = i + 2
            depth = 0
            while end < len(self.text) and (depth > 0 or self.text[end] != "]"):
                depth += (self.text[end] in "([{") - (self.text[end] in ")]}")
                end += 1
            self.attributes.setdefault(len(text), []).extend(_attributes(self.text[i + 2 : end]))
            stop = min(end + 2, len(self.text))
            lines += " " + "\n" * "".join(self.gap[i:stop]).count("\n")
            i = stop
        text.append("")  # the end, so that attributes and white space there have a token
        gap.append(lines)
        self.text, self.gap = text, gap

    def _match_brackets(self):
        self.mate = {}
        open_ = []
        for i, text in enumerate(self.text):
            if text in _PAIRS:
                open_.append(i)
            elif text in (")", "]", "}") and text:
                if open_ and _PAIRS[self.text[open_[-1]]] == text:
                    self.mate[open_[-1]] = i
                    self.mate[i] = open_.pop()

    def closing(self, i):
        """The bracket that closes the one at i, or the end: the compiler will say what is wrong."""
        return self.mate.get(i, len(self.text) - 1)

    def closing_angle(self, i):
        """The `>` for the `<` at i, or None."""
        depth = 0
        while i < len(self.text) - 1:
            text = self.text[i]
            if text == "<":
                depth += 1
            elif text == ">":
                depth -= 1
                if depth == 0:
                    return i
            elif text in _PAIRS:
                i = self.closing(i)
            elif text in (";", ")", "]", "}"):
                return None
            i += 1
        return None

    def is_word(self, i):
        return WORD.match(self.text[i]) is not None

    def attributes_in(self, first, last):
        return [a for i in range(first, last) for a in self.attributes.get(i, ())]

    def erase(self, first, last):
        for i in range(first, last):
            if not self.text[i].startswith("#"):
                self.text[i] = ""

    def line(self, i):
        """The line in the user's source."""
        line = 1
        for at in range(i + 1):
            line += self.gap[at].count("\n")
            if at < i:
                marker = re.match(r"#(?:line)?\s*([0-9]+)", self.text[at])
                if marker:
                    line = int(marker[1]) - 1
        return line

    def written(self):
        parts = []
        for i, text in enumerate(self.text):
            parts.append(self.gap[i])
            parts.append(text)
            if i in self.after:
                parts.append(self.after[i])
        return "".join(parts)


def _attributes(tokens):
    result, i = [], 0
    while i < len(tokens):
        if WORD.match(tokens[i]):
            name, arguments = tokens[i], []
            if i + 1 < len(tokens) and tokens[i + 1] == "(":
                depth, end = 1, i + 2
                while end < len(tokens):
                    depth += (tokens[end] == "(") - (tokens[end] == ")")
                    if depth == 0:
                        break
                    arguments.append(tokens[end])
                    end += 1
                i = end
            result.append(Attribute(name, arguments))
        i += 1
    return result
