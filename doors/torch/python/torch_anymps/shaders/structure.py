# SPDX-License-Identifier: Apache-2.0
"""The declarations of a shader: where each begins and ends, what it declares, and what it names."""

from dataclasses import dataclass, field

from .tokens import WORD

_ADDRESS_SPACES = {"device", "thread", "threadgroup", "threadgroup_imageblock", "object_data", "ray_data"}


@dataclass
class Declaration:
    first: int  # tokens: [first, last)
    last: int
    head: int  # the first token after `template <...>`
    is_template: bool = False
    is_instantiation: bool = False  # `template` without parameters
    is_specialization: bool = False  # `template <>`
    name: str = ""
    parameters: int = -1  # the `(` of a function
    body: int = -1  # the `{` of a function
    scope: tuple = ()
    words: frozenset = field(default_factory=frozenset)


def declarations(tokens):
    """All of them, those in namespaces and types too, in order."""
    result = []
    _scan(tokens, 0, len(tokens.text) - 1, (), result)
    return result


def _scan(tokens, i, end, scope, result):
    text = tokens.text
    while i < end:
        if text[i].startswith("#") or text[i] == ";":
            i += 1
            continue
        if text[i] in ("public", "private", "protected") and text[i + 1] == ":":
            i += 2
            continue
        i = _declaration(tokens, i, end, scope, result)


def _declaration(tokens, first, end, scope, result):
    text = tokens.text
    found = Declaration(first, first, first, scope=scope)
    i = first
    while i < end and text[i] == "template":
        if text[i + 1] != "<":
            found.is_instantiation = True
            i += 1
            break
        close = tokens.closing_angle(i + 1)
        if close is None:
            break
        found.is_template = True
        found.is_specialization = close == i + 2
        i = close + 1
    found.head = i
    keyword, assigned, colon = "", False, False
    while i < end:
        t = text[i]
        if t == ";":
            i += 1
            break
        if t in ("namespace", "struct", "class", "union", "enum") and not keyword and found.parameters < 0:
            keyword = t
        elif t == "extern" and text[i + 1].startswith('"'):
            keyword = "extern"
            i += 1
        elif t == "=" and "operator" not in (text[i - 1], text[i - 2]):
            assigned = True
        elif t == "<" and i > first and tokens.is_word(i - 1) and text[i - 1] != "operator" and not assigned:
            i = tokens.closing_angle(i) or i
        elif t == "(":
            if text[i - 1] == "operator":
                i += 1
            elif found.parameters < 0 and text[i - 1] not in ("alignas", "decltype", "__attribute__") and not assigned:
                found.parameters = i
                found.name = _name_before(tokens, i, found.head)
            i = tokens.closing(i)
        elif t == "[":
            i = tokens.closing(i)
        elif t == ":" and found.parameters >= 0:
            colon = True
        elif t == "{":
            close = tokens.closing(i)
            if keyword in ("namespace", "extern"):
                inner = scope
                if keyword == "namespace":
                    inner += tuple(w for w in text[found.head : i] if WORD.match(w) and w not in ("namespace", "inline"))
                _scan(tokens, i + 1, close, inner, result)
                return close + 1
            if keyword and found.parameters < 0:
                if keyword != "enum":
                    _scan(tokens, i + 1, close, (*scope, "{}"), result)
                i = close
            elif assigned or (colon and (tokens.is_word(i - 1) or text[i - 1] == ">")) or found.parameters < 0:
                i = close
            else:
                found.body = i
                i = close + 1
                break
        i += 1
    found.last = max(i, first + 1)
    if not found.name or keyword:
        found.name = _declared_name(tokens, found, keyword) or found.name
    found.words = frozenset(w for w in text[first : found.last] if WORD.match(w))
    result.append(found)
    return found.last


def _name_before(tokens, i, first):
    i -= 1
    if tokens.text[i] == ">":
        depth = 0
        while i > first:
            depth += (tokens.text[i] == ">") - (tokens.text[i] == "<")
            i -= 1
            if depth == 0:
                break
    return tokens.text[i] if tokens.is_word(i) else ""


def _declared_name(tokens, found, keyword):
    text = tokens.text
    words = [i for i in range(found.head, found.last) if WORD.match(text[i])]
    if keyword:
        for i in words:
            if text[i] in ("struct", "class", "union", "enum", "alignas"):
                continue
            return text[i]
        return ""
    if words and text[words[0]] == "using":
        return text[words[1]] if len(words) > 1 else ""
    for i in range(found.head, found.last):
        if text[i] in ("=", ";", "{", "[") and i > found.head and tokens.is_word(i - 1):
            return text[i - 1]
    return ""


def waiting(found, primitives):
    """The names through which a thread may come to wait for others: those of the library and all that name them."""
    tainted = set(primitives)
    size = -1
    while size != len(tainted):
        size = len(tainted)
        tainted.update(d.name for d in found if d.name and d.name not in tainted and not tainted.isdisjoint(d.words))
    return tainted


def erase_repeated(tokens, found):
    """Functions that differ in address spaces alone are one function here: the first is kept."""
    seen = set()
    kept = []
    for d in found:
        if d.body >= 0 and not d.is_instantiation:
            key = (d.scope, tuple(_plain(tokens.text[d.first : d.last])))
            if "{}" in d.scope:
                key = (_enclosing(tokens, d.first), *key)
            if key in seen:
                tokens.erase(d.first, d.last)
                continue
            seen.add(key)
        kept.append(d)
    return kept


def _enclosing(tokens, i):
    """The `{` around a token."""
    while i > 0:
        i -= 1
        if tokens.text[i] == "}":
            i = tokens.mate.get(i, i)
        elif tokens.text[i] == "{":
            return i
    return 0


def _plain(texts):
    for text in texts:
        if text in _ADDRESS_SPACES or text.startswith("#") or not text:
            continue
        yield "const" if text == "constant" else text
