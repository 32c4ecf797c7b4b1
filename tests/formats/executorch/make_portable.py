# SPDX-License-Identifier: Apache-2.0
"""Makes the bundles of tests/data/executorch/portable with pip's executorch: what a program can hold besides delegates.

    make_portable.py [NAME ...]
    make_portable.py large          programs that ask for gigabytes -> tests/data/executorch/large

Needs executorch 1.4.1 and torch (requirements/executorch.txt). The expected outputs are torch's own.
"""
import argparse
import copy
import functools
import logging
import pathlib
import warnings

logging.disable(logging.WARNING)
warnings.filterwarnings("ignore")

import torch  # noqa: E402
from executorch.devtools import BundledProgram  # noqa: E402
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite  # noqa: E402
from executorch.devtools.bundled_program.serialize import (  # noqa: E402
    serialize_from_bundled_program_to_flatbuffer,
)
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge  # noqa: E402
from executorch.exir.passes import MemoryPlanningPass  # noqa: E402
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass  # noqa: E402
from torch.export import Dim, export  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parents[2] / "data" / "executorch" / "portable"
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def bundle(methods, cases=None, compile_config=None, passes=(), **backend):
    """methods: {name: (module, inputs, dynamic shapes)}; cases: {name: [inputs, ...]}."""
    exported = {name: export(m.eval(), inputs, dynamic_shapes=dynamic, strict=False)
                for name, (m, inputs, dynamic) in methods.items()}
    edge = to_edge(exported, compile_config=compile_config or EdgeCompileConfig(_check_ir_validity=False))
    program = edge.to_executorch(ExecutorchBackendConfig(passes=list(passes), **backend))
    suites = []
    for name, (module, inputs, _) in methods.items():
        tests = []
        for given in (cases or {}).get(name, [inputs]):
            # Each case expects what a fresh program gives, whatever the cases before left in its buffers.
            outputs = torch.utils._pytree.tree_leaves(copy.deepcopy(module)(*copy.deepcopy(given)))
            tests.append(MethodTestCase(inputs=list(given), expected_outputs=outputs))
        suites.append(MethodTestSuite(method_name=name, test_cases=tests))
    made = {".pte": bytes(serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, suites)))}
    for weights in program._tensor_data.values():
        made[".ptd"] = bytes(weights)
    return made


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, 5), torch.nn.Linear(5, 4)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)).reshape(-1, 5)).view(2, 3, 4).sum(1)


@case
def segmented():
    """Constants in a segment, views without instructions."""
    return bundle({"forward": (Mlp(), (torch.randn(2, 3, 6),), None)})


@case
def methods():
    """Two methods, none of them `forward`."""
    class Half(torch.nn.Module):
        def forward(self, x):
            return x * 0.5 + 1

    return bundle({"encode": (Mlp(), (torch.randn(2, 3, 6),), None), "decode": (Half(), (torch.randn(3),), None)})


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x):
        self.total.add_(x)
        return self.total * 2


@case
def buffer_with_content():
    """A buffer that the method changes, with initial content."""
    torch.manual_seed(1)
    inputs = [(torch.randn(3),) for _ in range(3)]
    # The trace does not run the module, so that the buffer is saved as it is here.
    return bundle({"forward": (Counter(), inputs[0], None)}, {"forward": inputs},
                  passes=[InitializedMutableBufferPass(["total"])])


class Cache(torch.nn.Module):
    """A cache of keys as language models have it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 4, 3))

    def forward(self, position, x):
        self.keys.index_copy_(1, position, x)
        return self.keys.sum(1)


@case
def buffer_of_zeros():
    """A buffer without initial content in the file: zeros."""
    inputs = [(torch.tensor([i]), torch.randn(1, 1, 3)) for i in range(4)]
    return bundle({"forward": (Cache(), inputs[0], None)}, {"forward": inputs})


@case
def cond():
    """torch.cond."""
    class Cond(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda a: torch.sin(a) + 1, lambda a: a * 2, (x,))

    return bundle({"forward": (Cond(), (torch.ones(2, 3),), None)},
                  {"forward": [(torch.ones(2, 3),), (-torch.ones(2, 3),)]})


@case
def map_rows():
    """torch.map: a loop with a known number of rounds."""
    from functorch.experimental.control_flow import map as torch_map

    class Map(torch.nn.Module):
        def forward(self, x, y):
            return torch_map(lambda row, other: row + other, x, y)

    return bundle({"forward": (Map(), (torch.randn(3, 2), torch.randn(2)), None)})


@case
def scan_of_any_length():
    """torch.scan over a dynamic axis: a loop whose number of rounds is known when it runs."""
    from torch._higher_order_ops.scan import scan

    class Scan(torch.nn.Module):
        def forward(self, start, x):
            def step(carry, row):
                carry = carry * 0.5 + row
                return carry, torch.tanh(carry)

            return scan(step, start, x)

    torch.manual_seed(3)
    start = torch.randn(3)
    return bundle({"forward": (Scan(), (start, torch.randn(4, 3)), (None, {0: Dim("n", min=2, max=8)}))},
                  {"forward": [(start, torch.randn(n, 3)) for n in (2, 5, 8)]})


@case
def dynamic():
    """A dynamic axis, and shape arithmetic by instructions."""
    class Dynamic(torch.nn.Module):
        def forward(self, x):
            return (x + 1).reshape(x.shape[0] * 2, 3).softmax(-1)

    return bundle({"forward": (Dynamic(), (torch.randn(4, 2, 3),), ({0: Dim("n", min=2, max=8)},))},
                  {"forward": [(torch.randn(n, 2, 3),) for n in (2, 4, 8)]})


@case
def channels_last():
    """An input, a weight and an output whose channels lie innermost."""
    class Conv(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)

        def forward(self, x):
            return self.conv(x)

    module = Conv().to(memory_format=torch.channels_last)
    x = torch.randn(1, 3, 5, 4).to(memory_format=torch.channels_last)
    return bundle({"forward": (module, (x,), None)}, compile_config=EdgeCompileConfig(_check_ir_validity=False))


@case
def numbers():
    """Numbers among the inputs."""
    class Numbers(torch.nn.Module):
        def forward(self, x, n, flag, factor):
            return x * n if flag else x * factor

    return bundle({"forward": (Numbers(), (torch.randn(3), 4, True, 0.5), None)})


@case
def unplanned_io():
    """Inputs and outputs that have no place in planned memory."""
    return bundle({"forward": (Mlp(), (torch.randn(2, 3, 6),), None)},
                  memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False))


@case
def weights_outside():
    """Weights in a file of their own."""
    return bundle({"forward": (Mlp(), (torch.randn(2, 3, 6),), None)}, external_constants=True)


@case
def changed_input():
    """A module that writes into its argument: the program gives that first, and the bundle does not expect it."""
    class Changes(torch.nn.Module):
        def forward(self, x, y):
            x[0] = y
            return x.sum(0) * y

    return bundle({"forward": (Changes(), (torch.randn(2, 3), torch.randn(3)), None)})


@case
def shifts():
    """Operators whose names end in an underscore and that change nothing: their arguments are read again."""
    class Shifts(torch.nn.Module):
        def forward(self, a):
            return ((a >> 1) & 3).cumsum(0), a * 2, (a << 2) + a

    return bundle({"forward": (Shifts(), (torch.tensor([49, 7, -3, 2**40 + 5]),), None)})


# Programs of a few kilobytes that ask for gigabytes; they have no test cases.
LARGE = {
    "counts": lambda x: x + torch.arange(1_800_000_000).sum(),
    "fills": lambda x: x + torch.full((1 << 30,), 0.5).sum(),
    "doubles": lambda x: x + functools.reduce(lambda y, _: torch.cat([y, y + 1]), range(22), torch.arange(256.0)).sum(),
    "selects": lambda x: x + torch.arange(9.0)[torch.zeros(1 << 30, dtype=torch.int64)].sum(),
    "multiplies": lambda x: x + (torch.arange(1 << 15)[:, None] * torch.arange(1 << 15)[None]).sum(),
    "gives": lambda x: x.expand(1 << 29, 3) + 1,
}


def make_large(folder):
    class Large(torch.nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, x):
            return self.function(x)

    class Remembers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(1 << 28))

        def forward(self, x):
            self.total.add_(x)
            return self.total[:3].clone()

    folder.mkdir(parents=True, exist_ok=True)
    modules = {name: (Large(function), torch.ones(3)) for name, function in LARGE.items()}
    modules["remembers"] = (Remembers(), torch.ones(1))
    for name, (module, x) in modules.items():
        exported = export(module, (x,), strict=False)
        program = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False)).to_executorch()
        (folder / f"{name}.pte").write_bytes(program.buffer)
        print(f"large/{name}.pte: {len(program.buffer)} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=DATA)
    args = parser.parse_args()
    if args.names == ["large"]:
        return make_large(args.output.parent / "large")
    args.output.mkdir(parents=True, exist_ok=True)
    failed = []
    for name, make in CASES.items():
        if args.names and name not in args.names:
            continue
        torch.manual_seed(0)
        try:
            data = make()
        except Exception as error:  # noqa: BLE001  (the others are made all the same)
            print(f"{name}: {type(error).__name__}: {error}")
            failed.append(name)
            continue
        for suffix, content in data.items():
            (args.output / f"{name}{suffix}").write_bytes(content)
            print(f"{name}{suffix}: {len(content)} bytes")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
