# SPDX-License-Identifier: Apache-2.0
"""PyTorch's device mps beside PyTorch's CPU, eager and compiled, in one process and in turns: writes torch.json and torch.md.

An op without a kernel for mps ends the run (there is no fallback), and so does a result that differs."""
import argparse
import gc
import math
import os
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ.pop("PYTORCH_ENABLE_MPS_FALLBACK", None)
sys.path[:0] = [str(ROOT / "bench" / "models"), str(ROOT / "bench" / "replay")]
import models
import torch
import torch.nn.functional as F
from report import machine, save
from turns import in_turns, shown

RUNTIMES = {"anymps": ("mps", None), "torch": ("cpu", None), "anymps_compile": ("mps", "anymps"), "inductor": ("cpu", "inductor")}


# Each case makes, for a device and a backend of torch.compile, a function that runs once and returns what is compared.


def op_case(function, *inputs):
    def make(device, backend):
        moved = [x.to(device) for x in inputs]
        run = torch.compile(function, backend=backend) if backend else function

        def once():
            with torch.no_grad():
                return run(*moved)

        return once

    return make


def gradient_case(device, backend):
    x = torch.ones(16, device=device, requires_grad=True)

    def function(x):
        return (x * x).sum()

    run = torch.compile(function, backend=backend) if backend else function
    return lambda: torch.autograd.grad(run(x), x)[0]


def model_case(name, training):
    factory, data, optimizer = models.MODELS[name]
    torch.manual_seed(0)
    weights, inputs = factory().state_dict(), data()

    def make(device, backend):
        model = factory()
        model.load_state_dict(weights)
        model.to(device).train(training)
        x, labels = (value.to(device) for value in inputs)
        run = torch.compile(model, backend=backend) if backend else model
        if not training:

            def infer():
                with torch.no_grad():
                    return run(x)

            return infer
        updates = optimizer(model.parameters())

        def step():
            updates.zero_grad()
            loss = F.cross_entropy(run(x), labels)
            loss.backward()
            updates.step()
            return loss.detach()

        return step

    return make


def cases():
    generator = torch.Generator().manual_seed(0)

    def floats(*shape):
        return torch.randn(*shape, generator=generator)

    for count, name in ((1, "1 element"), (1 << 20, "1 M elements")):
        a, b = floats(count), floats(count)
        yield f"add, {name}", "inference", op_case(torch.add, a, b)
        yield f"x * 2.5, {name}", "inference", op_case(lambda x: x * 2.5, a)
        yield f"relu, {name}", "inference", op_case(torch.relu, a)
        yield f"exp, {name}", "inference", op_case(torch.exp, a)
        yield f"sum, {name}", "inference", op_case(torch.sum, a)
        yield f"4 elementwise ops, {name}", "inference", op_case(lambda x, y: torch.sigmoid(x * y + x) - y, a, b)
    yield "matmul 16x16", "inference", op_case(torch.matmul, floats(16, 16), floats(16, 16))
    yield "linear 64x768x3072", "inference", op_case(F.linear, floats(64, 768), floats(3072, 768), floats(3072))
    yield "softmax 16x16", "inference", op_case(lambda x: torch.softmax(x, -1), floats(16, 16))
    yield "sum of squares, 16 elements", "training", gradient_case
    for name in ("resnet18", "mobilenet_v2", "transformer"):
        yield name, "inference", model_case(name, False)
        yield name, "training", model_case(name, True)


def measure(make, rounds, runtimes):
    """Milliseconds of each turn by runtime. The first results are compared: a fast wrong answer is none."""
    torch._dynamo.reset()  # once: what was compiled for a runtime is lost with it
    runs, first = {}, {}
    for runtime in runtimes:
        runs[runtime] = make(*RUNTIMES[runtime])
        first[runtime] = runs[runtime]().cpu()
    for runtime, result in first.items():
        torch.testing.assert_close(result, first["torch"], rtol=2e-2, atol=2e-3, msg=lambda text, name=runtime: f"{name}: {text}")
    return in_turns(runs, rounds, 5000)


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def table(rows, about, runtimes):
    titles = {"anymps": "mps", "torch": "CPU", "anymps_compile": "mps, compiled", "inductor": "CPU, inductor"}
    lines = [
        f"PyTorch's device mps beside its CPU (median of the turns; in brackets the least); {about['cpu']}, {about['cores']} cores, "
        f"PyTorch {torch.__version__}. Ratios above 1: the device is faster.",
        "",
        f"| case | phase | {' | '.join(titles[runtime] for runtime in runtimes)} | CPU / mps | inductor / compiled |",
        "|---|---|" + "--:|" * (len(runtimes) + 2),
    ]
    eager, compiled = [], []
    for case, phase in dict.fromkeys((row["case"], row["phase"]) for row in rows):
        by = {row["runtime"]: row for row in rows if (row["case"], row["phase"]) == (case, phase)}
        cells = [f"{shown(by[r]['median_ms'])} ({shown(by[r]['min_ms'])})" if r in by else "-" for r in runtimes]
        ratios = []
        for ours, theirs, kept in (("anymps", "torch", eager), ("anymps_compile", "inductor", compiled)):
            if ours in by and theirs in by:
                kept.append(by[theirs]["median_ms"] / by[ours]["median_ms"])
                ratios.append(f"{kept[-1]:.2f}")
            else:
                ratios.append("-")
        lines.append(f"| {case} | {phase} | {' | '.join(cells)} | {' | '.join(ratios)} |")
    lines += ["", f"Geometric means: eager {geometric_mean(eager):.2f}, compiled {geometric_mean(compiled):.2f}."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="turns of each runtime (default 7)")
    parser.add_argument("--cases", default="", help="only those whose names or phases hold this")
    parser.add_argument("--runtimes", default=",".join(RUNTIMES), help="torch is always among them")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if not torch.backends.mps.is_available():
        sys.exit("bench: this environment has no device mps: pip install ./doors/torch")
    runtimes = [runtime for runtime in RUNTIMES if runtime in args.runtimes.split(",") or runtime == "torch"]
    rows = []
    for name, phase, make in cases():
        if args.cases not in f"{name} {phase}":
            continue
        times = measure(make, args.rounds, runtimes)
        for runtime, got in times.items():
            rows.append({"case": name, "phase": phase, "runtime": runtime, "median_ms": statistics.median(got), "min_ms": min(got)})
        print(f"{name:30} {phase:10}", *(f"{r} {shown(statistics.median(got)):>11}" for r, got in times.items()), flush=True)
        gc.collect()
        torch.mps.empty_cache()
    about = machine(ROOT)
    out = args.out or ROOT / ("build/bench" if args.cases or len(runtimes) < len(RUNTIMES) else "bench/results")
    save(out, "torch", {"machine": about, "rows": rows}, table(rows, about, runtimes))


if __name__ == "__main__":
    main()
