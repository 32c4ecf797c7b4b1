#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares every node of every model with the reference driver, as ANYMPS_CHECK=reference does; runs in .venvs/peers.

    check_models.py [--isa best,avx2] [--threads N] [--large] [--list] [PART ...]
    PART: of the names of the models to take (default: all)

The models are those of make_kinds.py, make_models.py, make_halves.py, make_quantized.py and wheels.py; they are made or
fetched if they are not there. Each has a line: the nodes compared, the difference that came nearest to what is allowed,
as a share of that, with its op and kernel, and the seconds. A model is checked up to its first node that differs.

The reference is in no haste, so pictures and texts are small here; --large takes them as the models do.
"""
import argparse
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

import wheel_cases

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / ".models"
PICTURE = {"N": 1, "input.2": 96, "input.3": 64}
WORDS = {"N": 2, "S": 7}
LARGE = {"N": 1, "S": 64}
REFERENCE = {"mobilenet_v2": PICTURE, "minilm_l6": WORDS, "resnet50": PICTURE, "bert_base": WORDS}
# The models of each script with the extents of their free dimensions, or others than those that are fixed.
MADE = {
    "make_kinds.py": {f"kind_{name}": {} for name in ("words", "speech", "clip", "decoder", "picture")},
    "make_models.py": REFERENCE,
    "make_halves.py": {f"{name}_{half}": dims for half in ("f16", "bf16") for name, dims in REFERENCE.items()},
    "make_quantized.py": {"lstm_dynamic": {}, "mobilenet_v2_qdq": PICTURE, "minilm_l6_dynamic": WORDS,
                          "resnet50_qdq": PICTURE, "bert_base_dynamic": WORDS, "bert_base_4bit": WORDS},
}
SCRIPTS = {name: script for script, names in MADE.items() for name in names}
NAMES = [*SCRIPTS, *wheel_cases.CASES]
TYPES = {onnx.TensorProto.FLOAT: "tensor(float)", onnx.TensorProto.DOUBLE: "tensor(double)",
         onnx.TensorProto.INT64: "tensor(int64)", onnx.TensorProto.INT32: "tensor(int32)",
         onnx.TensorProto.STRING: "tensor(string)"}
LINE = re.compile(r'check: (?P<op>\S+) "(?P<node>.*)" (?P<kernel>.+): (?P<share>\S+) of what is allowed')


class Input:
    """Of a model: its name, type and shape, as ONNX Runtime says them. It has not all of the models' types itself."""

    def __init__(self, value):
        tensor = value.type.tensor_type
        self.name, self.type = value.name, TYPES[tensor.elem_type]
        self.shape = [extent.dim_value or extent.dim_param or None for extent in tensor.shape.dim]


def inputs_of(path):
    graph = onnx.load(path).graph
    constants = {constant.name for constant in graph.initializer}
    return [Input(value) for value in graph.input if value.name not in constants]


def extents(name, large=False):
    if name in SCRIPTS:
        return LARGE if large else MADE[SCRIPTS[name]][name]
    case = wheel_cases.CASES[name]
    return case.dims[0] if large else case.check or case.dims[0]


def path_of(name):
    """The file of a model, made or fetched if it is not there."""
    if name not in SCRIPTS:
        return wheel_cases.model_path(name)
    command = [sys.executable, ROOT / "models" / SCRIPTS[name], "--out", MODELS, name]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {SCRIPTS[name]} could not make it\n{done.stderr}")
    return MODELS / f"{name}.onnx"


def random_inputs(values, dims):
    """For the models that scripts make: words below 1000, of which some are masked, and numbers around zero."""
    rng, inputs = np.random.default_rng(7), {}
    for value in values:
        shape = [dims.get(f"{value.name}.{axis}", dims.get(extent, extent)) for axis, extent in enumerate(value.shape)]
        if value.type == "tensor(int64)":
            array = rng.integers(0, 2 if "mask" in value.name else 1000, shape)
            array[..., 0] = 1  # a row that is masked altogether has no defined result
            inputs[value.name] = array
        else:
            inputs[value.name] = rng.standard_normal(shape).astype(np.float32)
    return inputs


def run_checked(name, large=False):
    """Runs a model under the check: a node that differs is an exception."""
    import anymps

    path, dims = path_of(name), extents(name, large)
    values = inputs_of(path)
    inputs = random_inputs(values, dims) if name in SCRIPTS else wheel_cases.make_inputs(name, values, dims)
    fixed = any(f"{value.name}.{axis}" in dims and isinstance(extent, int)
                for value in values for axis, extent in enumerate(value.shape))
    anymps.load(wheel_cases.resized(path, dims) if fixed else path, "cpu", check=True)(**inputs)


def in_process(name, large, environment, log):
    os.environ.update(environment, ANYMPS_VERBOSE="check")
    sys.path.insert(0, str(ROOT / "build" / "python"))
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 2)
    try:
        run_checked(name, large)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(1)


def check(name, large=False, environment=None):
    """Checks a model in a process of its own: nodes compared, the furthest of them, and what is wrong, or ""."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "stderr"
        run = multiprocessing.get_context("spawn").Process(target=in_process, args=(name, large, environment or {}, log))
        run.start()
        run.join()
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    nodes = [match for match in map(LINE.fullmatch, lines) if match]
    furthest = max(nodes, key=lambda node: float(node["share"]), default=None)
    wrong = ""
    if run.exitcode:
        wrong = next((line for line in reversed(lines) if not LINE.fullmatch(line)), f"ended with {run.exitcode}")
    return len(nodes), furthest, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="of the names of the models to take (default: all)")
    parser.add_argument("--isa", default="best", help="values of ANYMPS_ISA, one after another (default: best)")
    parser.add_argument("--threads", type=int, default=0, help="default: all cores")
    parser.add_argument("--large", action="store_true", help="pictures and texts as large as the models take them")
    parser.add_argument("--list", action="store_true", help="print the names of the models, and end")
    args = parser.parse_args()
    names = [name for name in NAMES if not args.parts or any(part in name for part in args.parts)]
    if args.list:
        sys.exit(print("\n".join(names)))
    if not names:
        parser.error(f"no model with {' or '.join(args.parts)} in its name; see --list")
    total, bad, furthest_of_all, start = 0, [], (0, ""), time.monotonic()
    for isa in args.isa.split(","):
        environment = {"ANYMPS_NUM_THREADS": str(args.threads)} | ({} if isa == "best" else {"ANYMPS_ISA": isa})
        print(f"instruction set: {isa}\n nodes  furthest  seconds  model", flush=True)
        for name in names:
            before = time.monotonic()
            count, furthest, wrong = check(name, args.large, environment)
            share, where = (float(furthest["share"]), f"{furthest['op']} {furthest['kernel']}") if furthest else (0, "")
            print(f"{count:6}  {share:8.2g}  {time.monotonic() - before:7.1f}  {name}  {where}", flush=True)
            if wrong:
                bad.append(f"{name} ({isa})")
                print(f"        {wrong}", flush=True)
            total += count
            furthest_of_all = max(furthest_of_all, (share, f"{where} of {name}"))
    print(f"{len(names) * len(args.isa.split(','))} models, {total} nodes, {time.monotonic() - start:.0f} s; furthest "
          f"{furthest_of_all[0]:.2g} of what is allowed: {furthest_of_all[1]}")
    if bad:
        sys.exit(f"{len(bad)} differ: {', '.join(bad)}")


if __name__ == "__main__":
    main()
