# SPDX-License-Identifier: Apache-2.0
"""One Python function for each op, made from the op table: signature, docstring and checks come from the op's record.

The same function adds a node when it is given values of a graph, and computes at once when it is given arrays."""
import inspect
import json
import keyword

import numpy as np

from . import _convert, _core
from ._executable import _kind_of, device as find_device

_ARRAYS = (np.ndarray, _core.Tensor)


def records():
    """The op table: a list of dicts, one for each op that a graph can be built with."""
    return [record for record in json.loads(_core.ops_text("json")) if not record["internal"]]


def python_name(name):
    return name + "_" if keyword.iskeyword(name) else name


def default_of(attr):
    """An attribute's default as a Python value."""
    text, kind = attr["default"], attr["kind"]
    if kind in ("int", "float"):
        return int(text) if kind == "int" else float(text)
    if kind == "dtype":
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value


def _docstring(record):
    lines = [record["doc"], ""]
    if record.get("formula"):
        lines += [f"``{record['formula']}``", ""]
    if record["inputs"] or record["attrs"]:
        lines.append("Args:")
    attrs = {attr["name"]: attr for attr in record["attrs"]}
    for spec in record["inputs"]:
        note = "one or more" if spec["variadic"] else "optional" if spec["optional"] else ""
        also = " or a list of numbers" if spec["name"] in attrs and attrs[spec["name"]]["kind"] == "ints" else ""
        text = ", ".join(part for part in (note, spec.get("doc", "")) if part)
        lines.append(f"    {python_name(spec['name'])}: {spec['dtypes']}{also}{'; ' + text if text else ''}")
    inputs = {spec["name"] for spec in record["inputs"]}
    for name, attr in attrs.items():
        if name in inputs:
            continue
        text = attr.get("doc", "")
        if attr["choices"]:
            text += (" " if text else "") + "one of " + ", ".join(map(repr, attr["choices"]))
        lines.append(f"    {python_name(name)}: {attr['kind']}{'; ' + text if text else ''}")
    lines += ["", "Returns:", "    " + ", ".join(out["name"] for out in record["outputs"])
              + (" …" if record.get("variadic_outputs") else "")]
    return "\n".join(lines)


def signature_of(record):
    """Inputs by position or name, attributes by name."""
    P = inspect.Parameter
    parameters, variadic, names = [], False, set()
    required_ahead = [not s["optional"] and not s["variadic"] for s in record["inputs"]]
    for i, spec in enumerate(record["inputs"]):
        name = python_name(spec["name"])
        names.add(spec["name"])
        if spec["variadic"]:
            variadic = True
            parameters.append(P(name, P.VAR_POSITIONAL))
        else:
            default = P.empty if any(required_ahead[i:]) else None
            parameters.append(P(name, P.KEYWORD_ONLY if variadic else P.POSITIONAL_OR_KEYWORD, default=default))
    for attr in record["attrs"]:
        if attr["name"] not in names:
            default = P.empty if attr["required"] else default_of(attr)
            parameters.append(P(python_name(attr["name"]), P.KEYWORD_ONLY, default=default))
    if record.get("variadic_outputs") or len(record["outputs"]) > 1:
        parameters.append(P("outputs", P.KEYWORD_ONLY, default=None))
    parameters.append(P("name", P.KEYWORD_ONLY, default=""))
    return inspect.Signature(parameters)


def _whole(value):
    """A number of 64 bits; a float that is one counts, as far as an attribute goes."""
    if isinstance(value, (float, np.floating)):
        if not float(value).is_integer():
            raise TypeError
        value = int(value)
    return _convert.whole(value, "attribute")


def _attr_value(op, attr, value):
    """A value as the kind of attribute that the record asks for."""
    kind = attr["kind"]
    try:
        if kind == "float":
            return float(value)
        if kind in ("int", "bool"):
            return _whole(value)
        if kind == "ints":
            return [_whole(value)] if np.ndim(value) == 0 else [_whole(v) for v in value]
        if kind == "floats":
            return [float(value)] if np.ndim(value) == 0 else [float(v) for v in value]
        if kind == "dtype":
            return _convert.dtype_name(value)
        if kind == "graph":
            if not callable(value) and not hasattr(value, "output_values"):
                raise TypeError
            return value
        return _convert.text(value, op)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, _core.Error) and kind not in ("int", "bool", "ints"):
            raise
        raise _core.InvalidArgument(f"[{op}] the attribute '{attr['name']}' must be of the kind {kind}, "
                                    f"{value!r} given") from None


def _is_numbers(value):
    if isinstance(value, (bool, int, float)):
        return True
    return isinstance(value, (list, tuple)) and all(isinstance(v, (int, np.integer, float)) for v in value)


def make_function(record):
    """The function of one op."""
    op, signature = record["name"], signature_of(record)
    attrs = {attr["name"]: attr for attr in record["attrs"]}
    specs = record["inputs"]
    known = {python_name(name): name for name in attrs}
    simple = not any(spec["variadic"] or spec["name"] in attrs for spec in specs)
    needed = sum(not spec["optional"] for spec in specs)
    has_bodies = any(attr["kind"] == "graph" for attr in attrs.values())
    required = any(attr["required"] for attr in record["attrs"])
    alone = len(record["outputs"]) == 1 and not record.get("variadic_outputs")

    def function(*args, **named):
        # Arrays by position and nothing else is what loops call: it needs no binding.
        if simple and alone and not named and len(args) == len(specs) == needed and not required:
            if all(type(value) in _ARRAYS for value in args):
                return _eager(op, args, args, (), 1)[0]
        try:
            bound = signature.bind(*args, **named).arguments
        except TypeError as error:
            raise TypeError(f"[{op}] {error}; the signature is {op}{signature}") from None
        node_name = bound.pop("name", "")
        outputs = bound.pop("outputs", None)
        inputs, given = [], []
        for spec in specs:
            value = bound.pop(python_name(spec["name"]), None)
            if spec["variadic"]:
                items = value or ()
                if len(items) == 1 and isinstance(items[0], (list, tuple)):
                    items = items[0]
                inputs.extend(items)
            elif value is not None and spec["name"] in attrs and _is_numbers(value):
                given.append((spec["name"], attrs[spec["name"]]["kind"], _attr_value(op, attrs[spec["name"]], value)))
                inputs.append(None)
            else:
                inputs.append(value)
        for key, value in bound.items():
            attr = attrs[known[key]]
            given.append((attr["name"], attr["kind"], _attr_value(op, attr, value)))
        while inputs and inputs[-1] is None:
            inputs.pop()
        graph = next((value._graph for value in inputs if hasattr(value, "_anymps_value")), None)
        dtypes = _dtypes_of(specs, inputs)
        if has_bodies:
            if graph is None:
                raise _core.InvalidArgument(f"[{op}] control flow is for graphs: give it a value of one")
            inputs = [graph._join(op, v, dtype) for v, dtype in zip(inputs, dtypes)]
            given = graph._bodies(op, inputs, given)
        count = _output_count(record, outputs, given)
        if graph is not None:
            results = graph._add(op, inputs, dtypes, given, node_name, count)
        else:
            results = _eager(op, inputs, dtypes, given, count)
        single = count == 1 and not record.get("variadic_outputs")
        return results[0] if single else tuple(results)

    function.__name__ = function.__qualname__ = python_name(op)
    function.__module__ = "anymps.ops"
    function.__doc__ = _docstring(record)
    function.__signature__ = signature
    return function


def _output_count(record, outputs, given):
    op, declared = record["name"], len(record["outputs"])
    if outputs is not None:
        if not isinstance(outputs, int) or not 0 < outputs <= 1 << 20 or not record.get("variadic_outputs") and outputs > declared:
            raise _core.InvalidArgument(f"[{op}] outputs must be a number from 1 to {declared}, {outputs!r} given")
        return outputs
    if record.get("variadic_outputs"):
        values = {name: value for name, _, value in given}
        if "sizes" in values:
            return len(values["sizes"])
        body = next((values[attr["name"]] for attr in record["attrs"] if attr["kind"] == "graph" and attr["name"] in values), None)
        if body is None:
            raise _core.InvalidArgument(f"[{op}] outputs=… must say how many there are")
        return len(body.outputs) - record["predicate_first"]
    return sum(not output["by_product"] for output in record["outputs"])


def _dtypes_of(specs, inputs):
    """For each input that is a number or a list: the dtype it takes, which is that of the inputs it must agree with."""
    specs = [specs[min(i, len(specs) - 1)] for i in range(len(inputs))]
    known = {}
    for spec, value in zip(specs, inputs):
        dtype = getattr(value, "dtype", None)
        if dtype is not None:
            known.setdefault(spec["type"], dtype if isinstance(dtype, str) else _convert.dtype_name(dtype))
    for spec, value in zip(specs, inputs):
        if value is None or spec["type"] in known or getattr(value, "dtype", None) is not None:
            continue
        alike = [np.asarray(v) for s, v in zip(specs, inputs) if s["type"] == spec["type"] and v is not None]
        allowed = spec["dtypes"].strip("{}").split(", ")
        kind = np.result_type(*alike).kind if all(a.dtype.kind in "biuf" for a in alike) else "O"
        wanted = {"b": ("bool", "i64"), "i": ("i64", "i32"), "u": ("i64", "i32"), "f": ()}.get(kind)
        if wanted is not None:
            known[spec["type"]] = next((name for name in (*wanted, "f32") if name in allowed), None)
    return [known.get(spec["type"]) for spec in specs]


def _eager(op, inputs, dtypes, attrs, outputs):
    """Computes at once, on the device of the first tensor, or on the default one."""
    first = next((v for v in inputs if hasattr(v, "dtype")), None)
    where = first.device if isinstance(first, _core.Tensor) else find_device()
    tensors = [None if v is None else _convert.to_tensor(v, where, dtype) for v, dtype in zip(inputs, dtypes)]
    kind = _kind_of(first)
    return [kind(tensor) for tensor in where.eager(op, tensors, attrs, outputs)]
