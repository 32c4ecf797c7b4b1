# SPDX-License-Identifier: Apache-2.0
"""Building graphs: values with Python's operators, and a method for each op."""
from collections import namedtuple

import numpy as np

from . import _convert, _core, ops
from ._executable import Executable, _describe, device as find_device
from ._index import index


# An input that its file gives a value; holds on to nothing of the graph.
DefaultInput = namedtuple("DefaultInput", "name dtype shape")


class Value:
    """A value of a graph. Operators and methods add nodes: `x * 2 + y`, `x @ w`, `x[:, 0]`, `x.softmax(axis=-1)`.

    `==` compares elements, as in numpy; `a is b` says whether two names mean the same value.
    """

    __slots__ = ("_anymps_value", "_graph")
    __array_priority__ = 1000  # numpy's operators leave the work to these

    def __init__(self, graph, core):
        self._graph, self._anymps_value = graph, core

    @property
    def name(self):
        """The value's name."""
        return self._anymps_value.name

    @property
    def dtype(self):
        """The element type's short name: 'f32'."""
        return self._anymps_value.dtype

    @property
    def shape(self):
        """Extents: numbers, names of dynamic ones, or None for what is not known; None while the rank is not known."""
        return self._anymps_value.shape

    @property
    def ndim(self):
        """The number of axes, or None while it is not known."""
        return None if self.shape is None else len(self.shape)

    @property
    def T(self):
        """The axes reversed."""
        return ops.transpose(self)

    def astype(self, dtype):
        """The value in another dtype."""
        return ops.cast(self, dtype=dtype)

    def __getitem__(self, key):
        return index(self, key)

    def __hash__(self):
        return hash(self._anymps_value._id())

    def __bool__(self):
        raise TypeError("[graph] a value has no number before the graph runs: use anymps.ops.where, or control flow ops")

    def __iter__(self):
        raise TypeError("[graph] a value cannot be walked through before the graph runs: use anymps.ops.split")

    def __repr__(self):
        return f"<anymps.Value {_describe(self)}>"


def _binary(op, swapped=False):
    function = op if callable(op) else getattr(ops, op)

    def method(self, other):
        if not _can_join(self, other):
            return NotImplemented
        return function(other, self) if swapped else function(self, other)
    return method


def _can_join(value, other):
    return isinstance(other, (Value, bool, int, float, complex, list, tuple, np.ndarray, np.generic, _core.Tensor)) or (
        isinstance(other, (str, bytes)) and value.dtype == "string")


def _dtype_of(operand):
    """The dtype that an operand has of its own, or None: numbers and lists take that of what they meet."""
    dtype = getattr(operand, "dtype", None)
    return dtype if dtype is None or isinstance(dtype, str) else _convert.dtype_name(dtype)


def _is_float(dtype):
    return dtype is not None and (dtype[0] in "fc" or dtype == "bf16")


def _true_divide(a, b):
    """`a / b`: of integers and bools a fraction, of f32."""
    known = [dtype for dtype in (_dtype_of(a), _dtype_of(b)) if dtype is not None]
    if any(map(_is_float, known)):
        return ops.div(a, b)
    graph = a._graph if isinstance(a, Value) else b._graph
    return ops.div(*(ops.cast(graph._join("div", v, "f32"), dtype="f32") for v in (a, b)))


def _floor_divide(a, b):
    """`a // b`. Of floats it is Python's, which goes with `a % b`: 1.0 // 0.1 is 9, though 1.0 / 0.1 rounds to 10."""
    dtype = next(dtype for dtype in (_dtype_of(a), _dtype_of(b)) if dtype is not None)
    if not _is_float(dtype):
        return ops.div(a, b, rounding="floor")
    graph = a._graph if isinstance(a, Value) else b._graph
    a, b = (graph._join("div", v, dtype) for v in (a, b))
    if dtype in ("f16", "bf16"):
        return _floor_divide(a.astype("f32"), b.astype("f32")).astype(dtype)
    rest, zero = ops.mod(a, b), graph.constant(0.0, dtype)
    below = ops.logical_and(ops.not_equal(rest, zero), ops.logical_xor(ops.less(rest, zero), ops.less(b, zero)))
    quotient = ops.sub(ops.div(ops.sub(a, rest), b), ops.cast(below, dtype=dtype))
    return ops.where(ops.equal(b, zero), ops.div(a, b), ops.rint(quotient))


def _power(a, b):
    """`a ** b`; integers have no negative powers, as in numpy."""
    dtype = next(dtype for dtype in (_dtype_of(a), _dtype_of(b)) if dtype is not None)
    if not _is_float(dtype) and not isinstance(b, Value):
        exponents = np.asarray(_convert.to_numpy(b) if isinstance(b, _core.Tensor) else b)
        if exponents.size and exponents.dtype.kind in "if" and (exponents < 0).any():
            raise _core.InvalidArgument("[pow] integers have no negative powers: use x.astype('f32')")
    return ops.pow(a, b)


for _names, _op in ((("__add__", "__radd__"), "add"), (("__sub__", "__rsub__"), "sub"), (("__mul__", "__rmul__"), "mul"),
                    (("__truediv__", "__rtruediv__"), _true_divide), (("__pow__", "__rpow__"), _power),
                    (("__floordiv__", "__rfloordiv__"), _floor_divide),
                    (("__mod__", "__rmod__"), "floor_mod"), (("__matmul__", "__rmatmul__"), "matmul")):
    setattr(Value, _names[0], _binary(_op))
    setattr(Value, _names[1], _binary(_op, swapped=True))
for _name, _op in (("__eq__", "equal"), ("__ne__", "not_equal"), ("__lt__", "less"), ("__le__", "less_equal"),
                   ("__gt__", "greater"), ("__ge__", "greater_equal")):
    setattr(Value, _name, _binary(_op))


def _logical(op):
    def method(self, other):
        if not _can_join(self, other):
            return NotImplemented
        names = (f"logical_{op}",) if self.dtype == "bool" else (f"bitwise_{op}", f"logical_{op}")
        return getattr(ops, next(n for n in names if hasattr(ops, n)))(self, other)
    return method


for _op in ("and", "or", "xor"):
    setattr(Value, f"__{_op}__", _logical(_op))
    setattr(Value, f"__r{_op}__", _logical(_op))
Value.__invert__ = lambda self: ops.logical_not(self) if self.dtype == "bool" else ops.bitwise_not(self)
Value.__neg__ = lambda self: ops.neg(self)
Value.__pos__ = lambda self: self
Value.__abs__ = lambda self: ops.abs(self)


class Graph:
    """A graph under construction, or one that was loaded.

        g = anymps.Graph("mlp")
        x = g.input("x", "f32", ("N", 4))
        g.outputs(anymps.ops.relu(x @ w + b))
        model = anymps.compile(g)

    Each op is also a method: `g.relu(x)`.
    """

    def __init__(self, name="", _core_graph=None):
        self._core = _core_graph if _core_graph is not None else _core.Graph(_convert.text(name, "graph"))
        self._values = {}

    @classmethod
    def load(cls, source, name="memory", inputs=()):
        """A graph from an .onnx, .mps or .pte file, or from the bytes of one. Of a .pte file it is the method
        'forward', or the only one; `Program` gives the others.

        `inputs` names those of `default_values` that are to be inputs of the graph instead of constants.
        """
        inputs = [_convert.text(name, "load") for name in inputs]
        if isinstance(source, (bytes, bytearray, memoryview)):
            return cls(_core_graph=_core.Graph.load_memory(bytes(source), _convert.text(name, "load"), inputs))
        return cls(_core_graph=_core.Graph.load(_convert.path(source, "load"), inputs))

    def _value(self, core):
        key = core._id()
        if key not in self._values:
            self._values[key] = Value(self, core)
        return self._values[key]

    def input(self, name, dtype="f32", shape=()):
        """Adds an input. An extent is a number, a name (equal names mean equal extents), or None for any."""
        dims, names = [], []
        for extent in shape:
            dynamic = extent is None or isinstance(extent, str)
            dims.append(-1 if dynamic else _convert.extent(extent, "input"))
            names.append(_convert.text(extent, "input") if isinstance(extent, str) else None)
        return self._value(self._core.input(_convert.text(name, "input"), _convert.dtype_name(dtype), dims, names))

    def list_input(self, name, dtype="f32", optional=False):
        """Adds an input that is a list of tensors; with `optional` a list or None."""
        kind = _convert.OPTIONAL_SEQUENCE if optional else _convert.SEQUENCE
        return self._value(self._core.list_input(_convert.text(name, "input"), kind, _convert.dtype_name(dtype)))

    def optional_input(self, name, dtype="f32"):
        """Adds an input that is a tensor or None."""
        return self._value(self._core.list_input(_convert.text(name, "input"), _convert.OPTIONAL, _convert.dtype_name(dtype)))

    def constant(self, value, dtype=None, name="", copy=True):
        """Adds a constant: an array, a number or a list; float64 lists and numbers become f32 unless `dtype` says
        otherwise. Without a copy it is an array's own memory: `Executable.refresh(name)` tells that its numbers have
        changed."""
        name, device = _convert.text(name, "constant"), find_device("cpu")
        dtype = None if dtype is None else _convert.dtype_name(dtype)
        if not copy:
            return self._value(self._core.constant_view(name, _convert.shared(value, device, "constant", dtype)))
        if isinstance(value, (np.ndarray, np.generic)) and dtype in _convert.NUMPY_DTYPES:
            value = value.astype(_convert.NUMPY_DTYPES[dtype])
        tensor = _convert.to_tensor(value, device, dtype)
        if tensor._container:
            raise _core.Unsupported("[constant] lists cannot be constants: use anymps.ops.sequence_construct")
        if dtype is not None and tensor.dtype != dtype:
            tensor = _convert.cast(tensor, dtype)
        if tensor.dtype == "string":
            return self._value(self._core.string_constant(name, list(tensor.shape), tensor._strings()))
        array = np.ascontiguousarray(_convert.plain_array(tensor)).reshape(tensor.shape)
        return self._value(self._core.constant(name, _core.from_buffer(array, tensor.dtype, device)))

    def dimension(self, symbol):
        """A dimension as a number: one that a shape of an input names, or one that `Executable.bind` gives."""
        return self._add("dimension", [], [], [("symbol", "string", _convert.text(symbol, "dimension"))], "", 1)[0]

    def outputs(self, *values):
        """Says which values the graph gives."""
        if len(values) == 1 and isinstance(values[0], (list, tuple)):
            values = tuple(values[0])
        for value in values:
            if not isinstance(value, Value):
                raise _core.InvalidArgument(f"[graph] an output must be a value of the graph, not {type(value).__name__}")
        self._core.set_outputs([value._anymps_value for value in values])

    @property
    def input_values(self):
        """The graph's inputs."""
        return [self._value(core) for core in self._core.inputs]

    @property
    def default_values(self):
        """Inputs that the file gives a value (ONNX: initializers that are listed as inputs too) and that are constants
        here: name, dtype and shape. `Graph.load(source, inputs=[name])` makes inputs of them."""
        return [DefaultInput(value.name, value.dtype, value.shape) for value in self._core.defaults]

    @property
    def output_values(self):
        """The graph's outputs."""
        return [self._value(core) for core in self._core.outputs]

    def op(self, name, *inputs, outputs=1, node_name="", **attrs):
        """Adds any op by its name; the typed form is the method of that name."""
        kwargs = dict(attrs)
        function = getattr(ops, name, None) or getattr(ops, name + "_", None)
        if function is None:
            raise _core.NotFound(f"[op] there is no op '{name}'")
        if "outputs" in function.__signature__.parameters:
            kwargs["outputs"] = outputs
        return function(*[self._join(name, v) for v in inputs], name=node_name, **kwargs)

    def gradient(self, y, xs, seed=None):
        """The gradient of `y` to each of `xs`, as new values of the graph: of the sum of y's elements, or of
        `sum(seed * y)`. Zeros where y does not depend on x.

            loss = anymps.ops.reduce_mean((x @ w - t) ** 2)
            dw, db = g.gradient(loss, [w, b])
        """
        single = isinstance(xs, Value)
        values = [y, *([xs] if single else xs)]
        for value in values:
            if not isinstance(value, Value):
                raise _core.InvalidArgument(f"[gradient] values of a graph are needed, not {type(value).__name__}")
        weight = None if seed is None else self._join("gradient", seed, y.dtype)._anymps_value
        cores = [value._anymps_value for value in values]
        found = [self._value(core) for core in self._core.gradient(cores[0], cores[1:], weight)]
        return found[0] if single else found

    def _join(self, op, value, like=None):
        """An operand as a value of this graph: numbers and arrays become constants."""
        if value is None:
            return None
        if isinstance(value, Value):
            if value._graph is not self:
                raise _core.InvalidArgument(f"[{op}] the value '{value.name}' belongs to another graph")
            return value
        return self.constant(value, None if hasattr(value, "dtype") else like)

    def _bodies(self, op, inputs, attrs):
        """The graphs of control flow. A Python function becomes one: it gets values like those that the op gives to its
        body, and gives back values."""
        given = {name: value for name, _, value in attrs}
        results = []
        for name, kind, value in attrs:
            if kind == "graph" and not isinstance(value, Graph):
                if op in ("call", "sequence_map"):
                    like = inputs
                elif op == "if_else":
                    like = inputs[1:]
                elif op == "for_loop":
                    like = [("i", inputs[0].dtype, ()), *inputs[3:]]
                elif op == "while_loop" and name == "before":
                    like = inputs
                elif op == "while_loop":
                    before = given["before"]
                    like = [*before.output_values[1:], *inputs[given["carried"]:]]
                else:
                    raise _core.InvalidArgument(f"[{op}] '{name}' must be an anymps.Graph")
                value = given[name] = _trace(f"{op}.{name}", value, like)
            results.append((name, kind, value._core if isinstance(value, Graph) else value))
        return results

    def _add(self, op, inputs, dtypes, attrs, name, outputs):
        values = [self._join(op, v, dtype) for v, dtype in zip(inputs, dtypes)]
        cores = [None if v is None else v._anymps_value for v in values]
        return [self._value(core) for core in self._core.op(op, cores, attrs, _convert.text(name, op), outputs)]

    def save(self, path):
        """Saves the graph: as an ONNX model if the name ends in .onnx, else as an .mps file."""
        self._core.save(_convert.path(path, "save"))

    def bytes(self, format="mps"):
        """What a file of the graph would hold, of the format 'mps' or 'onnx'. `Graph.load` reads it."""
        return self._core.bytes(_convert.text(format, "save"))

    def text(self, format="text"):
        """The graph as 'text', 'json' or 'svg'."""
        return self._core.text(_convert.text(format, "graph"))

    def _repr_svg_(self):
        return self.text("svg")

    def __repr__(self):
        return (f"<anymps.Graph ({', '.join(map(_describe, self._core.inputs))}) -> "
                f"({', '.join(map(_describe, self._core.outputs))})>")


def _trace(name, function, like):
    """A graph of what a Python function does with values like the given ones."""
    graph, values = Graph(name), []
    for i, value in enumerate(like):
        label, dtype, shape = value if isinstance(value, tuple) else (f"x{i}", value.dtype, value.shape)
        container = 0 if isinstance(value, tuple) else value._anymps_value._container
        if container:
            values.append(graph._value(graph._core.list_input(label, container, dtype)))
        elif shape is None:
            raise _core.InvalidArgument(f"[{name}] the rank of '{value.name}' is not known: give an anymps.Graph")
        else:
            values.append(graph.input(label, dtype, [e if isinstance(e, int) else None for e in shape]))
    results = function(*values)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    graph.outputs([graph._join(name, result) for result in results])
    return graph


def _method(function, first):
    def method(self, *args, **named):
        return function(self, *args, **named) if first else function(*[self._join(function.__name__, a) for a in args], **named)
    method.__name__, method.__doc__ = function.__name__, function.__doc__
    method.__qualname__ = f"{'Value' if first else 'Graph'}.{function.__name__}"
    return method


for _name in ops.__all__:
    _function = getattr(ops, _name)
    if not hasattr(Value, _name):
        setattr(Value, _name, _method(_function, True))
    if not hasattr(Graph, _name):
        setattr(Graph, _name, _method(_function, False))


def _place(values, which, what):
    """The number of an input or an output that is given by its number or its name."""
    names = [value.name for value in values]
    if isinstance(which, str) and which in names:
        return names.index(which)
    if isinstance(which, str):
        raise _core.NotFound(f"[compile] there is no {what} '{which}'; there are: {', '.join(names)}")
    return _convert.whole(which, "compile", 0)


_DENORMALS = {"": 0, "flush": 1, "keep": 2}


def compile(source, device="", threads=0, optimization_level=1, check=False, without_passes=(), plan_cache=0,
            cached=False, aliases=None, denormals="", quantize=""):
    """Makes a graph, a model file (.onnx, .mps, .pte) or its bytes ready to run.

    Args:
        source: a Graph, a path, or bytes
        device: 'cpu', 'reference', …; the default is that of ANYMPS_DRIVER
        threads: 0 for the device's default
        optimization_level: 0 for no passes
        check: compare every node with the reference driver; a difference raises Mismatch
        without_passes: names of passes to leave out
        plan_cache: how many sets of feed shapes are kept ready; 0 for the default
        cached: the same graph and options give the same executable
        aliases: {result: input}, by name or number: results that may lie in the memory of inputs (`Executable.run` with
            the same array for both), for updates in place
        denormals: subnormal numbers (f32 below 1.2e-38) are slow on many processors: 'flush' takes them for zeros, 'keep'
            does not; the default is what ANYMPS_DENORMALS says, else 'flush'
        quantize: 'int8' or 'int4': large weights of products are rounded to so many bits, and tables of embeddings to 8,
            in memory and in what `save` writes; results change by that
    """
    where = find_device(device)
    if denormals not in _DENORMALS:
        raise _core.InvalidArgument(f"[compile] denormals={denormals!r}: they are 'flush' or 'keep'")
    without = without_passes if isinstance(without_passes, str) else ",".join(without_passes)
    without, threads = _convert.text(without, "compile"), _convert.whole(threads, "compile", -1, 1 << 16)
    plan_cache = _convert.whole(plan_cache, "compile", 0)
    quantize = _convert.text("" if quantize is None else quantize, "compile")

    def ready(graph):
        pairs = [(_place(graph.output_values, result, "output"), _place(graph.input_values, feed, "input"))
                 for result, feed in (aliases or {}).items()]
        return Executable(graph._core.compile(where, threads, optimization_level, bool(check), without, plan_cache,
                                              cached, pairs, _DENORMALS[denormals], quantize), where)
    if isinstance(source, Graph):
        return ready(source)
    graph = Graph.load(source)
    executable = ready(graph)
    if defaults := graph.default_values:
        source = bytes(source) if isinstance(source, (bytearray, memoryview)) else source
        executable._set_defaults(defaults, lambda names: ready(Graph.load(source, inputs=names)))
    return executable
