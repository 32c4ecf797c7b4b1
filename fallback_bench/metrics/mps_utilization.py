#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of what a program does on MPS falls back to the CPU, by calls and by time.

    python metrics/mps_utilization.py                        a tiny training run
    python metrics/mps_utilization.py -- python train.py     any program: a script, -m MODULE or -c CODE

Every ATen call on an mps tensor is counted and timed, each waited for, so that a program runs slower than it would alone.
Calls that only make views or empty tensors are not counted. With AnyMPS, ops that have no kernel on a Mac fall back here too;
ANYMPS_STRICT_MPS=0 lets all of its kernels be used.
"""

import argparse
import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TINY = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv3d(1, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool3d(2), nn.Flatten(), nn.Linear(64, 4)).to("mps")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(4, 1, 8, 8, 8).to("mps"), torch.tensor([0, 1, 2, 3]).to("mps")
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.multi_margin_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""


def watch(program, out):
    """Runs a program in this process and writes what was counted, however it ends."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    from mps_fallback_bench.environment import has_door
    from mps_fallback_bench.observer import Warned

    if not torch.backends.mps.is_available():
        sys.exit("there is no device mps: this is neither a Mac with MPS nor a machine with torch_anymps (doors/torch)")

    class Watch(TorchDispatchMode):
        def __init__(self, fallbacks):
            super().__init__()
            self.ops, self.fallbacks = {}, fallbacks

        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            start = time.perf_counter()
            result = op(*args, **(kwargs or {}))
            if self.computes(op) and any(isinstance(t, torch.Tensor) and t.device.type == "mps" for t in tree_leaves((args, kwargs, result))):
                torch.mps.synchronize()
                seen = self.ops.setdefault(str(op), {"calls": 0, "seconds": 0.0, "fell_back": 0, "fallback_seconds": 0.0})
                taken = time.perf_counter() - start
                fell = self.fallbacks() > 0
                seen["calls"] += 1
                seen["seconds"] += taken
                seen["fell_back"] += fell
                seen["fallback_seconds"] += taken * fell
            return result

        @staticmethod
        def computes(op):
            views = [r.alias_info is not None and not r.alias_info.is_write for r in op._schema.returns]
            return not any(views) and not op._schema.name.startswith(("aten::empty", "aten::detach"))

    if has_door():
        import torch_anymps

        def fallbacks():
            return sum(entry["count"] for entry in torch_anymps.fallbacks(reset=True))
    else:

        def fallbacks():
            count = sum(warned.ops.values())
            warned.ops.clear()
            return count

    with Warned() as warned, Watch(fallbacks) as watched:
        fallbacks()
        try:
            program()
        finally:
            Path(out).write_text(json.dumps(watched.ops), encoding="utf-8")


def program_of(command):
    """The Python program that a command line starts, as a function."""
    kind, rest = command[1], command[2:]
    if kind == "-c" and rest:
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        return lambda: exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    if kind == "-m" and rest:
        sys.argv = rest
        sys.path.insert(0, "")
        return lambda: runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    sys.argv = [kind, *rest]
    sys.path.insert(0, str(Path(kind).resolve().parent))
    return lambda: runpy.run_path(kind, run_name="__main__")


def report(ops):
    def total(name):
        return sum(op[name] for op in ops.values())

    calls, fell, seconds, lost = (total(name) for name in ("calls", "fell_back", "seconds", "fallback_seconds"))
    return {
        "calls": calls,
        "fell_back": fell,
        "fallback_percent_calls": 100 * fell / calls if calls else 0.0,
        "seconds": seconds,
        "fallback_seconds": lost,
        "fallback_percent_time": 100 * lost / seconds if seconds else 0.0,
        "ops": {name: op for name, op in sorted(ops.items(), key=lambda item: -item[1]["fallback_seconds"]) if op["fell_back"]},
    }


def show(made):
    print(f"calls on mps  {made['calls']:8}      fell back  {made['fell_back']:8}      {made['fallback_percent_calls']:5.1f} %")
    print(f"time          {made['seconds'] * 1e3:8.1f} ms   falling back {made['fallback_seconds'] * 1e3:6.1f} ms   {made['fallback_percent_time']:5.1f} %")
    for name, op in made["ops"].items():
        print(f"  {name:48} {op['fell_back']:6} calls {op['fallback_seconds'] * 1e3:9.2f} ms")


def main():
    arguments = sys.argv[1:]
    command = arguments[arguments.index("--") + 1 :] if "--" in arguments else None
    own = arguments[: arguments.index("--")] if command is not None else arguments
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="the numbers as JSON")
    parser.add_argument("--inside", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args(own)
    if options.inside:
        watch(program_of(command), options.inside)
        return
    command = command if command is not None else [sys.executable, "-c", TINY]
    if len(command) < 2 or "python" not in os.path.basename(command[0]):
        parser.error("say what to run as: -- python train.py, -- python -m module or -- python -c code")
    # A process of its own: the switch for fallbacks is read when PyTorch is loaded.
    with tempfile.TemporaryDirectory() as folder:
        counted = Path(folder) / "ops.json"
        env = {"ANYMPS_STRICT_MPS": "1", **os.environ, "PYTORCH_ENABLE_MPS_FALLBACK": "1"}
        status = subprocess.run([command[0], __file__, "--inside", str(counted), "--", *command], env=env).returncode
        if not counted.exists():
            sys.exit(status or 1)
        made = report(json.loads(counted.read_text(encoding="utf-8")))
    show(made)
    if options.json:
        Path(options.json).write_text(json.dumps(made, indent=1), encoding="utf-8")
    sys.exit(status)


if __name__ == "__main__":
    main()
