# SPDX-License-Identifier: Apache-2.0
"""Makes C++ of a preprocessed shader.

The language is C++ but for a few things: attributes say what a kernel's parameters are, threadgroup variables are
shared, and literals are floats. All else is done by the library's headers (include/).
"""

import ast
import re

from .structure import declarations, erase_repeated, waiting
from .tokens import Tokens

# What an attribute of a parameter asks for: `Kind` in include/anymps_metal/kernel.h.
_KINDS = {
    "thread_position_in_grid": -2,
    "threads_per_grid": -3,
    "grid_size": -3,
    "thread_position_in_threadgroup": -4,
    "threadgroup_position_in_grid": -5,
    "threads_per_threadgroup": -6,
    "dispatch_threads_per_threadgroup": -7,
    "threadgroups_per_grid": -8,
    "thread_index_in_threadgroup": -9,
    "thread_index_in_simdgroup": -10,
    "simdgroup_index_in_threadgroup": -11,
    "simdgroups_per_threadgroup": -12,
    "dispatch_simdgroups_per_threadgroup": -13,
    "threads_per_simdgroup": -14,
    "thread_execution_width": -14,
    "thread_index_in_quadgroup": -15,
    "quadgroup_index_in_threadgroup": -16,
    "quadgroups_per_threadgroup": -17,
    "grid_origin": -18,
}
_THREADGROUP_BUFFER = -1

_LANES = "sum product max min and or xor all any broadcast shuffle shuffle_xor shuffle_up shuffle_down".split()
# The functions of the library in which a thread waits for others.
_WAITS = {
    "threadgroup_barrier",
    "simdgroup_barrier",
    "simdgroup_matrix",
    "make_filled_simdgroup_matrix",
    *(f"simdgroup_{name}" for name in ("load", "store", "multiply", "multiply_accumulate")),
    *(f"simdgroup_{name}8x8" for name in ("float", "half", "bfloat")),
    *(f"{group}_{name}" for group in ("simd", "quad") for name in _LANES),
    *(f"simd_prefix_{kind}_{name}" for kind in ("inclusive", "exclusive") for name in ("sum", "product")),
    *(f"simd_shuffle_{name}" for name in ("rotate_up", "rotate_down", "and_fill_up", "and_fill_down")),
    *(f"simd_{name}" for name in ("ballot", "active_threads_mask", "is_first", "broadcast_first")),
}
_SWIZZLE = re.compile(r"(?:[xyzw]{2,4}|[rgba]{2,4})$")
_INLINE = "static __attribute__((always_inline)) inline "


class ShaderError(SyntaxError):
    """What is wrong, at a line of the user's source, as a compiler says it."""

    def __init__(self, line, message):
        super().__init__(f"program_source:{line}: error: {message}")


def translate(source):
    """C++ for a preprocessed shader."""
    tokens = Tokens(source)
    found = erase_repeated(tokens, declarations(tokens))
    swizzles = _swizzles(tokens)
    for i, text in enumerate(tokens.text):
        if text == "constant" and "const" in (tokens.text[i - 1], tokens.text[i + 1]):
            tokens.text[i] = ""  # which means const, and that is there
    waits = waiting(found, _WAITS)
    kernels = {d.name: d for d in found if d.body >= 0 and _is_kernel(tokens, d)}
    numbers = iter(range(1 << 30))
    for d in found:
        if d.is_instantiation:
            _instantiate(tokens, d, kernels, waits, next(numbers))
        elif d.body >= 0:
            is_kernel = _is_kernel(tokens, d)
            shares = _share_variables(tokens, d, "anymps_here" if is_kernel else "void", numbers)
            if is_kernel:
                _define(tokens, d, shares, waits, next(numbers))
        else:
            _set_constant(tokens, d)
    return f"{swizzles}#include <metal_stdlib>\n{tokens.written()}\n"


def _swizzles(tokens):
    """Macros that list the swizzles which the shader names, for vectors of two, three and four."""
    _join_swizzles(tokens)
    names = {
        text
        for i, text in enumerate(tokens.text)
        if i > 0 and tokens.text[i - 1] in (".", "->") and _SWIZZLE.match(text)
    }
    lines = []
    for width in (2, 3, 4):
        members = []
        for name in sorted(names):
            letters = "xyzw" if name[0] in "xyzw" else "rgba"
            at = [letters.index(letter) for letter in name]
            if max(at) < width:
                members.append(f"X({name}, {len(at)}, {', '.join(map(str, at))})")
        lines.append(f"#define ANYMPS_SWIZZLES_{width}(X) {' '.join(members)}\n")
    return "".join(lines)


def _join_swizzles(tokens):
    """A swizzle of a swizzle becomes one: `v.zyx.x` is `v.z`."""
    for i in range(len(tokens.text) - 3, 0, -1):
        outer, inner = tokens.text[i], tokens.text[i + 2]
        if tokens.text[i - 1] not in (".", "->") or tokens.text[i + 1] != "." or not _SWIZZLE.match(outer):
            continue
        if inner and (_SWIZZLE.match(inner) or inner in tuple("xyzwrgba")):
            at = [("xyzw" if letter in "xyzw" else "rgba").index(letter) for letter in inner]
            if max(at) < len(outer):
                tokens.text[i] = "".join(outer[k] for k in at)
                tokens.erase(i + 1, i + 3)


def _is_kernel(tokens, d):
    if d.parameters < 0:
        return False
    if "kernel" in tokens.text[d.head : d.parameters]:
        return True
    return any(a.name == "kernel" for a in tokens.attributes_in(d.first, d.parameters))


def _host_name(tokens, first, last):
    for attribute in tokens.attributes_in(first, last):
        if attribute.name == "host_name":
            return "".join(ast.literal_eval(part) for part in attribute.arguments if part.startswith('"'))
    return None


def _define(tokens, d, shares, waits, number):
    """A kernel's definition: inlined into what runs it, and made known unless it is a template. One with variables in
    threadgroup memory returns a type of its own, by which their sizes are found."""
    for i in range(d.head, d.parameters):
        if tokens.text[i] in ("kernel", "static", "inline", "extern"):
            tokens.text[i] = ""
        if shares and tokens.text[i] == "void":
            tokens.text[i] = "auto"
    if shares:
        tokens.text[d.body] = "{ struct anymps_here {}; [&]() __attribute__((always_inline)) {"
        tokens.text[d.last - 1] = "}(); return anymps_here(); }"
    tokens.gap[d.head] += _INLINE
    name = _host_name(tokens, d.first, d.parameters)
    if d.is_template and not d.is_specialization:
        return
    function = "::" + "::".join([*d.scope, d.name])
    if d.is_specialization:
        if name is None:
            return
        function = "".join(tokens.gap[i] + tokens.text[i] for i in range(d.head, d.parameters))
        function = re.split(r"\b(?:void|auto)\b", function, maxsplit=1)[-1]
    if name is None:
        name = "::".join([*d.scope, d.name])
    tokens.after[d.last - 1] = _known(tokens, d, d, name, function.strip(), waits, number)


def _instantiate(tokens, d, kernels, waits, number):
    """`template [[host_name("name")]] kernel void function<arguments>(...);`, also with decltype."""
    name = _host_name(tokens, d.first, d.last)
    first = d.head
    while first < d.last and tokens.text[first] != "void" and tokens.text[first] != "decltype":
        first += 1
    if first >= d.last:
        return
    first = tokens.closing(first + 1) + 1 if tokens.text[first] == "decltype" else first + 1
    last = first
    while last < d.last and (tokens.is_word(last) or tokens.text[last] in ("::", "")):
        last += 1
    plain = next((t for t in reversed(tokens.text[first:last]) if t and t != "::"), "")
    definition = kernels.get(plain)
    if definition is None:
        if name is None:
            return  # of an ordinary function
        raise ShaderError(tokens.line(d.first), f"explicit instantiation of an unknown kernel '{plain}'")
    close = tokens.closing_angle(last) if tokens.text[last] == "<" else None
    arguments = "".join(tokens.gap[i] + tokens.text[i] for i in range(last, last if close is None else close + 1))
    arguments = " ".join(arguments.split())
    function = "::" + "::".join([*definition.scope, plain]) + arguments
    known = _known(tokens, definition, d, name or plain + arguments, function, waits, number)
    tokens.erase(d.first, d.last)
    tokens.after[d.last - 1] = known


def _known(tokens, definition, d, name, function, waits, number):
    """The line that makes a kernel known: what it is called, and what its parameters are."""
    kinds = _parameter_kinds(tokens, definition)
    most = 1024
    for attribute in tokens.attributes_in(definition.first, definition.parameters):
        if attribute.name == "max_total_threads_per_threadgroup":
            most = "".join(attribute.arguments)
    waiting_ = not waits.isdisjoint(definition.words | d.words)
    arguments = ", ".join([str(waiting_).lower(), f"&{function}", *map(str, kinds)])
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f' static ::anymps_shader::Kernel<{arguments}> anymps_kernel_{number}{{"{quoted}", {most}}};'


def _parameter_kinds(tokens, d):
    """For each parameter the number of its buffer, or a kind."""
    parts = _split(tokens, d.parameters + 1, tokens.closing(d.parameters))
    kinds, open_ = [], []
    for first, last in parts:
        kind = None
        for attribute in tokens.attributes_in(first, last + 1):
            if attribute.name == "buffer":
                kind = "".join(attribute.arguments)
            elif attribute.name == "threadgroup":
                kind = _THREADGROUP_BUFFER
            elif attribute.name in ("texture", "sampler", "stage_in"):
                raise ShaderError(tokens.line(first), f"[[{attribute.name}]] parameters are not supported")
            elif attribute.name in _KINDS:
                kind = _KINDS[attribute.name]
        if kind is None:
            open_.append(len(kinds))
        kinds.append(kind)
    taken = {int(kind) for kind in kinds if isinstance(kind, str) and kind.isdigit()}
    free = (i for i in range(1 << 16) if i not in taken)
    for i in open_:
        kinds[i] = next(free)
    return kinds


def _split(tokens, first, last):
    """The ranges between the commas of [first, last)."""
    if all(not text or text == "void" for text in tokens.text[first:last]):
        return []
    parts, begin, i = [], first, first
    while i < last:
        text = tokens.text[i]
        if text == ",":
            parts.append((begin, i))
            begin = i + 1
        elif text == "<" and tokens.is_word(i - 1):
            i = tokens.closing_angle(i) or i
        elif text in ("(", "[", "{"):
            i = tokens.closing(i)
        i += 1
    return [*parts, (begin, last)]


def _set_constant(tokens, d):
    """A function constant that nobody sets needs a value to be C++."""
    if any(a.name == "function_constant" for a in tokens.attributes_in(d.first, d.last)):
        tokens.gap[d.last - 1] += " {}"


def _share_variables(tokens, d, here, numbers):
    """Variables of a function in threadgroup memory become references to what the group shares."""
    found = False
    for i in range(d.body, d.last):
        if tokens.text[i] == "threadgroup" and not _is_qualifier(tokens, i):
            _share(tokens, i, here, numbers)
            found = True
    return found


def _is_qualifier(tokens, i):
    """Whether it qualifies what a pointer or reference points to, and so declares nothing shared."""
    i += 1
    while True:
        text = tokens.text[i]
        if text in ("*", "&", "&&", "(", ")", ">", "{", "}", ""):
            return True
        if text in (";", "[", ",", "="):
            return False
        if text == "alignas":
            i = tokens.closing(i + 1)
        elif text == "<":
            i = tokens.closing_angle(i) or i
        i += 1


def _share(tokens, i, here, numbers):
    begin = i
    while tokens.text[begin - 1] in ("const", "volatile", "static"):
        begin -= 1
    if tokens.text[begin - 1] not in ("{", "}", ";", ")", ":") and not tokens.text[begin - 1].startswith("#"):
        raise ShaderError(tokens.line(i), "'threadgroup' must come first in the declaration of a variable")
    end = i
    while tokens.text[end] not in (";", "="):
        end = tokens.closing(end) if tokens.text[end] in ("(", "[", "{") else end
        end = (tokens.closing_angle(end) or end) if tokens.text[end] == "<" else end
        end += 1
    if tokens.text[end] == "=":
        raise ShaderError(tokens.line(i), "variables in the threadgroup address space cannot be initialized")
    variables = _split(tokens, i + 1, end)
    name = variables[0][0]
    while tokens.text[name + 1] not in ("[", ",", ";"):
        name += 1
        if tokens.text[name] == "<":
            name = tokens.closing_angle(name) or name
        elif tokens.text[name] == "alignas":
            name = tokens.closing(name + 1)
    kind = " ".join(t for t in (*tokens.text[begin:i], *tokens.text[i + 1 : name]) if t != "static")
    number = next(numbers)
    alias = f"anymps_type_{number}"
    written = [f"using {alias} = {kind};"]
    for at, (first, last) in enumerate(variables):
        first = name if at == 0 else first
        size = "".join(tokens.gap[k] + tokens.text[k] for k in range(first + 1, last))
        slot = number if at == 0 else next(numbers)
        written.append(
            f"auto& {tokens.text[first]} = ::anymps_shader::threadgroup_variable<{alias}{size}, {slot}, {here}>();"
        )
    tokens.erase(begin, end + 1)
    tokens.text[begin] = " ".join(" ".join(written).split())
