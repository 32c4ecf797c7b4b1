# SPDX-License-Identifier: Apache-2.0
"""The tests of the ONNX standard's own suite, by name, with the op that each belongs to. The node tests are built in
memory when the standard's modules are imported, which takes half a minute; they are kept in build/ for the next time."""
import contextlib
import os
import pickle
import re
import warnings
from pathlib import Path

import onnx
from onnx.backend.test import runner as standard

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "onnx_conformance"
SUFFIX = "_cpu"
# The standard's own flaws: these cannot be passed by anybody. (How such a test fails, why). A failure of any other kind
# (another shape, another dtype, an error) counts as what it is.
RANDOM = ("Not equal to tolerance", "the output is random, and the suite compares it with other random numbers")
UNPASSABLE = {
    **{f"test_bernoulli{kind}{form}": RANDOM for kind in ("", "_double", "_seed") for form in ("", "_expanded")},
    "test_loop16_seq_none": ("Unable to compare", "the suite's runner cannot compare arrays without axes in a sequence"),
}


class Case:
    def __init__(self, name, kind, op, func):
        self.name, self.kind, self.op, self.func = name, kind, op, func


def _node_tests(load):
    """The node tests, from the file in build/ where it is of this version of onnx."""
    path = WORK / f"node_tests-{onnx.__version__}.pickle"
    with contextlib.suppress(OSError, pickle.UnpicklingError, EOFError, AttributeError):
        return pickle.loads(path.read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load(kind="node")
    WORK.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(tests))
    part.replace(path)
    return tests


def _op_of(name, model, names):
    """The op that a node test is about: that of the test it is an expansion of, if it is one."""
    short = re.sub(r"_expanded.*$", "", name)
    if short != name and short in names:
        model = names[short]
    nodes = [node.op_type for node in model.graph.node]
    plain = [op for op in nodes if op not in ("Constant", "Identity")] or nodes
    squeezed = name.replace("_", "")
    return max((op for op in plain if op.lower() in squeezed), key=len, default=plain[0])


def load(backend):
    """All tests that run on a CPU, as {name: Case}; each calls the backend when its function is called."""
    os.environ.setdefault("ONNX_HOME", str(WORK / "home"))
    original = standard.load_model_tests
    node_tests = _node_tests(original)
    standard.load_model_tests = lambda kind: node_tests if kind == "node" else original(kind=kind)
    try:
        made = standard.Runner(backend)
    finally:
        standard.load_model_tests = original
    models = {test.name: test.model for test in node_tests}
    cases = {}
    for category, items in made._test_items.items():
        kind = category.removesuffix("Model")
        for full, item in items.items():
            if full.endswith(SUFFIX):
                name = full.removesuffix(SUFFIX)
                op = _op_of(name, models[name], models) if kind == "Node" else f"({kind})"
                cases[name] = Case(name, kind, op, item.func)
    return cases
