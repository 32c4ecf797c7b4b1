# SPDX-License-Identifier: Apache-2.0
"""What runs: an executable, called with arrays by position or by name."""
import sys

import numpy as np

from . import _convert, _core


def device(name=""):
    """The device of that name: 'cpu', 'reference', 'null'; the default (ANYMPS_DRIVER) without one."""
    if isinstance(name, _core.Device):
        return name
    return _core.Device.get(_convert.text(name, "device") if name else "")


class Executable:
    """A graph that is ready to run on one device.

    Call it with arrays by position or by name. What comes back is of the kind of the first array that went in: numpy
    for numpy, lists and numbers; `anymps.Tensor` for those, and for dtypes that numpy lacks (bf16 without ml_dtypes);
    torch, paddle or jax through DLPack for theirs. One result comes as itself, several as a tuple.

    Inputs with a default (`defaults`) may be given by name. For the first call that gives a certain set of them the
    model is loaded and compiled again, with these as inputs; it is kept beside the one in which they are constants.
    """

    def __init__(self, core, device_):
        self._core = core
        self.device = device_
        self._inputs = [(v.name, v.dtype, v._container) for v in core.inputs]
        self._names = {name: i for i, (name, _, _) in enumerate(self._inputs)}
        self._set_defaults((), None)

    def _set_defaults(self, values, reload):
        """What the model gives a value; `reload(names)` makes an executable that has these as inputs."""
        self.defaults = list(values)
        self._default_names = frozenset(value.name for value in values)
        self._reload, self._variants = reload, {}

    @property
    def inputs(self):
        """The inputs: values with name, dtype and shape."""
        return self._core.inputs

    @property
    def outputs(self):
        """The outputs: values with name, dtype and shape."""
        return self._core.outputs

    def _choose(self, args, named):
        """The executable whose inputs these arguments are, and the arguments for it."""
        given = self._default_names.intersection(named) if self._default_names else None
        if not given:
            return self, args, named
        self._check_count(args)
        names = [name for name, _, _ in self._inputs[:len(args)]]
        if twice := set(names).intersection(named):
            raise _core.InvalidArgument(f"[run] the input '{min(twice)}' is given twice")
        if given not in self._variants:
            self._variants[given] = self._reload(sorted(given))
        return self._variants[given], (), {**dict(zip(names, args)), **named}

    def _check_count(self, args):
        if len(args) > len(self._inputs):
            raise _core.InvalidArgument(f"[run] {len(args)} arguments are given, the graph has "
                                        f"{len(self._inputs)} inputs: {', '.join(self._names)}")

    def feeds(self, args, named):
        """Arguments as tensors, in the order of the inputs."""
        self._check_count(args)
        values = list(args) + [_MISSING] * (len(self._inputs) - len(args))
        for name, value in named.items():
            if name not in self._names:
                raise _core.InvalidArgument(f"[run] there is no input '{name}'; there are: {', '.join(self._names)}")
            if values[self._names[name]] is not _MISSING:
                raise _core.InvalidArgument(f"[run] the input '{name}' is given twice")
            values[self._names[name]] = value
        tensors = []
        for value, (name, dtype, container) in zip(values, self._inputs):
            if value is _MISSING:
                raise _core.InvalidArgument(f"[run] the input '{name}' is not given")
            try:
                tensors.append(_convert.to_tensor(value, self.device, dtype, container))
            except _core.Error as error:
                raise type(error)(f"{error} (input '{name}')") from None
        return tensors

    def run(self, feeds, results=(), stream=None, profiler=None):
        """Runs with a list or a dict of feeds and gives the results as a list of tensors. Those of `results` that are
        not None are written to instead of being made."""
        args, named = ((), feeds) if isinstance(feeds, dict) else (feeds, {})
        targets = [None if r is None else _convert.to_tensor(r, self.device) for r in results]
        chosen, args, named = self._choose(args, named)
        return chosen._core.run(chosen.feeds(args, named), targets, _core_of(stream),
                                _core_of(profiler) or _active_profiler())

    def __call__(self, *args, **named):
        """Runs and gives the result, or a tuple of results."""
        quick = self._core.call(args, named, _profilers[-1]._core if _profilers else None)
        if quick is not None:
            return quick
        tensors = self.run_tensors(args, named)
        kind = _kind_of(args[0] if args else next(iter(named.values()), None))
        results = tuple(kind(t) for t in tensors)
        return results[0] if len(results) == 1 else results

    def run_tensors(self, args, named):
        """Runs with arguments by position and by name and gives a list of tensors."""
        chosen, args, named = self._choose(args, named)
        return chosen._core.run(chosen.feeds(args, named), [], None, _active_profiler())

    def submit(self, *args, stream, **named):
        """Queues the run on the stream and gives the tensors it will fill; errors come with stream.synchronize()."""
        chosen, args, named = self._choose(args, named)
        return chosen._core.submit(chosen.feeds(args, named), _core_of(stream))

    def save(self, path):
        """Saves the optimised graph as an .mps file."""
        self._core.save(_convert.path(path, "save"))

    def bytes(self):
        """What the file of `save` would hold. `anymps.load` reads it."""
        return self._core.bytes()

    def bind(self, **dimensions):
        """The same executable with dimensions of the graph bound by their names (`Graph.dimension`). Cheap: it may be
        made for a single call, `model.bind(N=5)(x)`."""
        values = [(_convert.text(name, "bind"), _convert.whole(value, "bind")) for name, value in dimensions.items()]
        return Executable(self._core.bind(values), self.device)

    def refresh(self, *names, write=None, **moved):
        """Constants over memory of the caller (`Graph.constant(…, copy=False)`) have changed: what was folded or packed
        of them is made anew, and nothing is compiled. A run sees all of the old numbers or all of the new ones.

        Args:
            names: constants that changed where they lie
            write: a function that changes them; it is called when no run reads them, and must not use the executable
            moved: constants by their names, and the arrays that take their places
        """
        changes = [(_convert.text(name, "refresh"), None) for name in names]
        changes += [(name, _convert.shared(value, self.device, "refresh")) for name, value in moved.items()]
        self._core.refresh(changes, write)

    def text(self, format="text", shapes=()):
        """The optimised graph as 'text', 'json' or 'svg'; 'passes'; with the feeds' shapes 'plan' or 'memory'."""
        extents = [_convert.extent(extent, "text") for shape in shapes for extent in shape]
        return self._core.text(_convert.text(format, "text"), extents)

    def variable(self, name):
        """What a variable of the graph holds (ops read_variable, assign_variable); None before it was assigned."""
        found = self._core.variable(_convert.text(name, "variable"))
        return None if found is None else _convert.to_array(found)

    def set_variable(self, name, value):
        """Sets a variable; the value is copied."""
        self._core.set_variable(_convert.text(name, "variable"), _convert.to_tensor(value, self.device))

    def plan_cache(self):
        """Entries, capacity, hits, misses and evictions of the cache of plans (one for each set of feed shapes)."""
        return self._core.plan_cache()

    def clear_plans(self):
        """Forgets the plans of all feed shapes."""
        self._core.clear_plans()

    def _repr_svg_(self):
        return self.text("svg")

    def __repr__(self):
        return (f"<anymps.Executable on {self.device.name}: ({', '.join(map(_describe, self.inputs))}) -> "
                f"({', '.join(map(_describe, self.outputs))})>")


_MISSING = object()
_profilers = []


def _core_of(handle):
    return getattr(handle, "_core", handle)


def _active_profiler():
    return _profilers[-1]._core if _profilers else None


def _kind_of(value):
    """How a result is handed to somebody who gave `value`."""
    if type(value) is np.ndarray:
        return _convert.to_array
    if isinstance(value, _core.Tensor):
        return lambda tensor: tensor
    if value is None or isinstance(value, (np.ndarray, np.generic, int, float, str, list, tuple)):
        return _convert.to_array
    roots = (base.__module__.split(".")[0] for base in type(value).__mro__)  # subclasses count as their base
    root = next((root for root in roots if root in ("torch", "paddle", "jax", "jaxlib")), None)
    root = "jax" if root == "jaxlib" else root
    if root not in sys.modules:
        return _convert.to_array
    module = sys.modules[root]
    where = {"torch": lambda: module, "jax": lambda: module.dlpack, "paddle": lambda: module.utils.dlpack}[root]()

    def give(tensor):
        if tensor._container != _convert.TENSOR or tensor.dtype == "string":
            return _convert.to_array(tensor)
        return where.from_dlpack(tensor._dlpack(False) if root == "paddle" else tensor)
    return give


def _describe(value):
    shape = value.shape
    extents = "?" if shape is None else ",".join("?" if e is None else str(e) for e in shape)
    return f"{value.name}: {value.dtype}[{extents}]"
