# SPDX-License-Identifier: Apache-2.0
"""Paddle's device mps beside Paddle's CPU, eager, in one process and in turns: writes paddle.json and paddle.md.

An op without a kernel for mps ends the run (strict mode), and so does a result that differs."""
import argparse
import gc
import os
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ["FLAGS_enable_api_kernel_fallback"] = "0"
sys.path[:0] = [str(ROOT / "bench" / "models"), str(ROOT / "doors" / "paddle" / "tests")]
import models
import numpy as np
import paddle
import paddle.nn.functional as F
from report import machine, save
from turns import TURN_MS, shown, timed

DEVICES = {"anymps": "mps", "paddle": "cpu"}


def tensors(device, *arrays):
    return [paddle.to_tensor(array, place=device) for array in arrays]


# Each case makes, for a device, a function that runs once and returns what is compared.


def op_case(function, *arrays):
    def make(device):
        inputs = tensors(device, *arrays)
        return lambda: function(*inputs)

    return make


def backward_case(device):
    (x,) = tensors(device, np.ones([16], dtype="float32"))
    x.stop_gradient = False

    def run():
        (gradient,) = paddle.grad((x * x).sum(), x)
        return gradient

    return run


def model_case(factory, data, training):
    weights = models.weights_of(models.make(factory, "cpu"))

    def make(device):
        model = models.make(factory, device, weights)
        x, labels = tensors(device, *data)
        if not training:
            model.eval()

            def infer():
                with paddle.no_grad():
                    return model(x)

            return infer
        model.train()
        optimizer = paddle.optimizer.Momentum(1e-3, parameters=model.parameters())

        def step():
            loss = F.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss.detach()

        return step

    return make


def cases():
    random = np.random.default_rng(0)

    def floats(*shape):
        return random.standard_normal(shape).astype("float32")

    a, b = floats(16), floats(16)
    yield "add, 16 elements", "op", op_case(paddle.add, a, b)
    yield "x * 2 + 1, 16 elements", "op", op_case(lambda x: x * 2 + 1, a)
    yield "matmul 16x16", "op", op_case(paddle.matmul, floats(16, 16), floats(16, 16))
    yield "softmax 16x16", "op", op_case(lambda x: F.softmax(x), floats(16, 16))
    yield "reshape and transpose", "op", op_case(lambda x: x.reshape([4, 4]).transpose([1, 0]), a)
    yield "sum of squares and its gradient, 16 elements", "op", backward_case
    yield "add, 1 M elements", "op", op_case(paddle.add, floats(1 << 20), floats(1 << 20))
    yield "matmul 512^3", "op", op_case(paddle.matmul, floats(512, 512), floats(512, 512))
    sizes = {"mobilenet_v2": models.mobilenet_v2, "resnet50": models.resnet50}
    for name, factory in sizes.items():
        yield f"{name}, 224x224, batch 1", "inference", model_case(factory, models.images(1, 224), False)
        yield f"{name}, 64x64, batch 8", "training", model_case(factory, models.images(8, 64), True)
    bert = models.Bert
    yield "bert, 4 layers, 64 tokens, batch 1", "inference", model_case(bert, models.sentences(1, 64), False)
    yield "bert, 4 layers, 64 tokens, batch 8", "training", model_case(bert, models.sentences(8, 64), True)


def measure(make, rounds):
    """Milliseconds of each turn by runtime. The first results are compared: a fast wrong answer is none."""
    runs, first = {}, {}
    for runtime, device in DEVICES.items():
        with paddle.device.device_guard(device):
            runs[runtime] = make(device)
            first[runtime] = runs[runtime]().numpy()
    np.testing.assert_allclose(first["anymps"], first["paddle"], rtol=2e-2, atol=2e-3)
    times = {runtime: [] for runtime in DEVICES}
    calls = {}
    for turn in range(rounds + 1):  # the first warms up and says how many calls make a turn
        for runtime, device in DEVICES.items():
            with paddle.device.device_guard(device):
                taken = timed(runs[runtime], calls.get(runtime, 2))
            if turn == 0:
                calls[runtime] = max(1, min(2000, int(TURN_MS / max(taken, 1e-3))))
            else:
                times[runtime].append(taken)
    return times


def table(rows, about):
    lines = [
        f"Paddle's device mps beside its CPU, eager (median of the turns; in brackets the least); {about['cpu']}, {about['cores']} cores, "
        f"PaddlePaddle {paddle.__version__}.",
        "",
        "| case | phase | AnyMPS | Paddle CPU | AnyMPS / Paddle |",
        "|---|---|--:|--:|--:|",
    ]
    for case, phase in dict.fromkeys((row["case"], row["phase"]) for row in rows):
        by = {row["runtime"]: row for row in rows if (row["case"], row["phase"]) == (case, phase)}
        cells = [f"{shown(by[runtime]['median_ms'])} ({shown(by[runtime]['min_ms'])})" for runtime in DEVICES]
        lines.append(f"| {case} | {phase} | {' | '.join(cells)} | {by['anymps']['median_ms'] / by['paddle']['median_ms']:.2f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="turns of each runtime (default 7)")
    parser.add_argument("--cases", default="", help="only those whose names or phases hold this")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if not paddle.is_compiled_with_mps():
        sys.exit("bench: this environment has no device mps: pip install ./doors/paddle")
    rows = []
    for name, phase, make in cases():
        if args.cases not in f"{name} {phase}":
            continue
        times = measure(make, args.rounds)
        for runtime, got in times.items():
            rows.append({"case": name, "phase": phase, "runtime": runtime, "median_ms": statistics.median(got), "min_ms": min(got)})
        print(f"{name:46} {phase:10}", *(f"{r} {shown(statistics.median(got)):>12}" for r, got in times.items()), flush=True)
        gc.collect()
        paddle.mps.empty_cache()
    about = machine(ROOT)
    out = args.out or ROOT / ("build/bench" if args.cases else "bench/results")
    save(out, "paddle", {"machine": about, "rows": rows}, table(rows, about))


if __name__ == "__main__":
    main()
