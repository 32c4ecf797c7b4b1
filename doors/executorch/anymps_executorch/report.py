# SPDX-License-Identifier: Apache-2.0
"""What a lowering came to: which calls are in delegates, which are not and why, and the nodes of each kind."""

import json
import os
import re
import tempfile
from collections import Counter
from importlib import resources

from executorch.exir._serialize._flatbuffer import _flatc_decompile
from executorch.exir.graph_module import get_control_flow_submodules
from executorch.exir.lowered_backend_module import get_lowered_submodules


def target_name(node):
    return getattr(node.target, "__name__", str(node.target))


def calls(program):
    """{node name: target} of the calls of an edge program."""
    return {n.name: target_name(n) for n in program.graph.nodes if n.op == "call_function"}


def payload_graph(payload):
    """The MPSGraph in a delegate's payload, as the JSON that flatc makes of it."""
    if payload[4:8] != b"MP00":
        raise ValueError("not an MPS payload: bytes 4..8 are not MP00")
    end = int.from_bytes(payload[8:16], "little")
    with tempfile.TemporaryDirectory() as folder:
        schema_path = os.path.join(folder, "schema.fbs")
        text = resources.files("executorch.backends.apple.mps.serialization").joinpath("schema.fbs").read_bytes()
        with open(schema_path, "wb") as out:
            out.write(text)
        with open(os.path.join(folder, "graph.bin"), "wb") as out:
            out.write(payload[24:end])
        _flatc_decompile(folder, schema_path, os.path.join(folder, "graph.bin"), ["--raw-binary", "--defaults-json"])
        with open(os.path.join(folder, "graph.json"), encoding="utf-8") as graph:
            text = graph.read()
        # flatc writes inf and nan, Python's JSON reads Infinity and NaN
        return json.loads(re.sub(r"(?<=: )(-?)inf\b", r"\1Infinity", re.sub(r"(?<=: )-?nan\b", "NaN", text)))


def node_kinds(payload):
    return Counter(n["mpsnode_union_type"] for n in payload_graph(payload).get("mps_nodes", []))


class Report:
    """delegates: a list of {kind: count}; outside: {target: (count, reason)}; delegated: calls in delegates."""

    def __init__(self, method, before, program, reasons):
        self.method = method
        lowered = get_lowered_submodules(program.graph_module)
        self.payloads = [module.processed_bytes for _, module, _ in lowered]
        self.delegates = [node_kinds(p) for p in self.payloads]
        left = calls(program)
        self.outside = {}
        for name, target in before.items():
            if name in left and name in reasons:
                count, why = self.outside.get(target, (0, reasons[name]))
                self.outside[target] = (count + 1, why)
        for _, branch, _ in get_control_flow_submodules(program.graph_module):
            for node in branch.graph.nodes:
                if node.op == "call_function":
                    count, why = self.outside.get(target_name(node), (0, "in a branch or a loop body"))
                    self.outside[target_name(node)] = (count + 1, why)
        self.total = len(before)
        self.delegated = self.total - sum(name in left and name in reasons for name in before)

    def kinds(self):
        return sum(self.delegates, Counter())

    def lines(self):
        count = len(self.delegates)
        yield (
            f"method {self.method}: {self.delegated} of {self.total} calls in {count} "
            f"delegate{'' if count == 1 else 's'}"
        )
        for i, kinds in enumerate(self.delegates):
            parts = ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()))
            yield f"  delegate {i}: {sum(kinds.values())} nodes, {len(self.payloads[i])} bytes: {parts}"
        for target, (n, why) in sorted(self.outside.items()):
            yield f"  outside: {target} x{n}: {why}"

    def __str__(self):
        return "\n".join(self.lines())
