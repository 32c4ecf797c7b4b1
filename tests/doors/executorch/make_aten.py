# SPDX-License-Identifier: Apache-2.0
"""Makes ExecuTorch programs of the cases in aten_cases.py: bundles with inputs and what torch computes of them eagerly.

    python tests/doors/executorch/make_aten.py FOLDER             a bundle for each case
    python tests/doors/executorch/make_aten.py FOLDER --grouped   a bundle for each family: the set that is kept in the repository

Needs executorch 1.4.1. No operator is delegated, so every one of them is a call of a portable kernel."""
import argparse
import contextlib
import io
import logging
import sys
import traceback
import warnings
from pathlib import Path

import torch
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.operator.convert import to_out_variant

sys.path.insert(0, str(Path(__file__).parent))
import aten_cases  # noqa: E402


class Calls(torch.nn.Module):
    """The functions of some cases, each with inputs of its own."""

    def __init__(self, cases):
        super().__init__()
        self.calls = [(function, len(inputs)) for _, _, function, inputs in cases]

    def forward(self, *inputs):
        results, at = [], 0
        for function, count in self.calls:
            result = function(*inputs[at:at + count])
            at += count
            results += result if isinstance(result, (tuple, list)) else [result]
        return tuple(results)


def kept(exported):
    """The operators that a program calls as they are, instead of what they can be decomposed to."""
    names = set()
    for node in exported.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload):
            try:
                to_out_variant(node.target)
                names.add(node.target)
            except Exception:  # noqa: BLE001, S110 - has no variant that a program could call
                pass
    return list(names)


def bundle(cases, dynamic=None):
    """(the file's bytes, the operators that it calls); dynamic: (shapes, inputs to run with)"""
    module = Calls(cases)
    inputs = tuple(x for case in cases for x in case[3])
    shapes = {"inputs": dynamic[0]} if dynamic else None
    exported = torch.export.export(module, inputs, strict=False, dynamic_shapes=shapes)
    config = EdgeCompileConfig(_check_ir_validity=False, preserve_ops=kept(exported) if not dynamic else [])
    program = to_edge(exported, compile_config=config).to_executorch()
    inputs = dynamic[1] if dynamic else inputs
    expected = module(*(x.clone() for x in inputs))
    suite = MethodTestSuite(method_name="forward",
                            test_cases=[MethodTestCase(inputs=[x.clone() for x in inputs], expected_outputs=list(expected))])
    data = serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, [suite]))
    plan = program.executorch_program.execution_plan[0]
    return data, {f"{op.name}.{op.overload}" if op.overload else op.name for op in plan.operators}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--grouped", action="store_true")
    parser.add_argument("-k", default="", help="only cases whose name has this in it")
    parser.add_argument("-v", action="store_true", help="say why a case cannot be exported")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    args.folder.mkdir(parents=True, exist_ok=True)
    cases = [case for case in aten_cases.build() if args.k in f"{case[0]}_{case[1]}"]
    groups = {}
    for case in cases:
        groups.setdefault(case[0] if args.grouped else f"{case[0]}_{case[1]}", []).append(case)
    operators, failed = set(), []
    todo = [(name, group, None) for name, group in groups.items()]
    todo += [(f"{case[0]}_{case[1]}", [case[:4]], case[4:]) for case in aten_cases.DYNAMIC if args.k in f"{case[0]}_{case[1]}"]
    for name, group, dynamic in todo:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                data, used = bundle(group, dynamic)
        except Exception as error:  # noqa: BLE001 - the exporter raises what it likes
            failed.append((name, error))
            if args.v:
                traceback.print_exc()
            continue
        operators |= used
        (args.folder / f"{name}.bpte").write_bytes(data)
    (args.folder / "operators.txt").write_text("\n".join(sorted(operators)) + "\n")
    for name, error in failed:
        print(f"not exported: {name}: {type(error).__name__}: {str(error).strip().splitlines()[:1]}")
    print(f"{len(todo) - len(failed)} of {len(todo)} bundles, {len(operators)} operators")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
