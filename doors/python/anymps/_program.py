# SPDX-License-Identifier: Apache-2.0
"""Programs of ExecuTorch: .pte files and bundles of them with test cases."""
import json

from . import _convert, _core
from ._executable import device as find_device
from ._graph import Graph


class Program:
    """A .pte file, or a bundled one, from a path or from bytes.

        program = anymps.Program("mv2_mps_bundled.pte")
        model = anymps.compile(program.graph())
        for inputs, expected in program.tests():
            results = model(*inputs)

    Where a method is asked for, the default is 'forward', or the only one.
    """

    def __init__(self, source, name="memory"):
        if isinstance(source, (bytes, bytearray, memoryview)):
            self._core = _core.Program.open_memory(bytes(source), _convert.text(name, "program"))
        else:
            self._core = _core.Program.open(_convert.path(source, "program"))

    @property
    def methods(self):
        """The names of the methods."""
        return self._core.methods

    def graph(self, method=""):
        """A method as a graph. Numbers among the method's inputs are fixed in the file, so the graph has none for them."""
        return Graph(_core_graph=self._core.graph(_convert.text(method or "", "program")))

    def tests(self, method="", device=""):
        """The test cases of a bundle: a list of (inputs, expected outputs), tensors in the order of the graph's; None for an
        output of which a test says nothing."""
        where, method = find_device(device), _convert.text(method or "", "program")
        return [(self._core.test_inputs(i, where, method), self._core.test_outputs(i, where, method))
                for i in range(self._core.test_count(method))]

    def info(self):
        """What is in the file, as a dict: methods with inputs, outputs, delegates, operators, constants and tests."""
        return json.loads(self._core.text("json"))

    def text(self):
        """What is in the file, for people."""
        return self._core.text("text")

    def __repr__(self):
        return f"<anymps.Program with {', '.join(self.methods) or 'no methods'}>"
