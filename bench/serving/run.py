#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Throughput and latency of our server, of our backend in tritonserver, and of Triton's Python backend with ONNX Runtime.

Called by `scripts/bench serving [options]`. All servers run all the time and are asked in turn, a round at a time, so
that a disturbance of the machine hits each of them; before that, their answers are compared. A run of everything writes
bench/results/serving.*; one of a part of it writes build/bench.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "bench" / "models"), str(Path(__file__).parent)]

import numpy as np  # noqa: E402
import report  # noqa: E402
import repository  # noqa: E402
import results  # noqa: E402
import tritonclient.http  # noqa: E402

from tests.doors.server import servers  # noqa: E402

KINDS = [kind for kind in results.TITLES if kind != "before"]
PROTOCOLS = ["http", "grpc"]
CONCURRENCY = [1, 8, 32]
MODELS = [m.name for m in repository.MODELS]
MAX_REL_DIFF = 1e-3
PAUSE_S = 0.3
LONGEST_MS = 16000  # a window in which no request ends is made longer, up to this


class Failure(RuntimeError):
    pass


def words(known, kind=str):
    def parse(value):
        got = [kind(v) for v in value.split(",")]
        unknown = [str(v) for v in got if known and v not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {', '.join(map(str, known))}")
        return got
    return parse


def parse_args():
    parser = argparse.ArgumentParser(prog="scripts/bench serving", description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=words(MODELS), default=MODELS, help="names, with commas")
    parser.add_argument("--servers", type=words(KINDS), default=KINDS, help="names, with commas")
    parser.add_argument("--protocols", type=words(PROTOCOLS), default=PROTOCOLS)
    parser.add_argument("--concurrency", type=words(None, int), default=CONCURRENCY)
    parser.add_argument("--instances", type=int, default=1, help="of each model (default 1)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of each instance (default: the cores)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each server (default 5)")
    parser.add_argument("--interval", type=int, default=1000, help="milliseconds of one of the three windows of a turn (default 1000)")
    parser.add_argument("--before", type=Path, metavar="BUILD", help="another build of our server, measured in the same run")
    parser.add_argument("--out", type=Path, help="folder of the results")
    args = parser.parse_args()
    if args.before:
        servers.BUILDS["before"] = args.before.resolve()
        args.servers = [*args.servers, "before"]
    if results.PEER not in args.servers:
        parser.error(f"--servers needs {results.PEER}, which the others are compared with")
    whole = (args.models, args.servers, args.protocols, args.concurrency) == (MODELS, KINDS, PROTOCOLS, CONCURRENCY) and args.rounds >= 5
    args.out = args.out or (ROOT / "bench" / "results" if whole else ROOT / "build" / "bench")
    return args


def perf_libraries():
    """perf_analyzer asks for two libraries by names that those in pytriton's wheel do not have."""
    folder = servers.BUILD / "serving" / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = servers.site_packages("triton") / "nvidia_pytriton.libs"
    for name, pattern in (("libb64.so.0d", "libb64-*.so.0d"), ("libcudart.so.12", "libcudart-*.so.12*")):
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(next(wheel.glob(pattern)))
    return folder


def analyze(server, model, protocol, concurrency, interval, folder):
    """One turn: three windows of perf_analyzer, as one figure."""
    out = Path(folder) / "perf.csv"
    out.unlink(missing_ok=True)
    command = [servers.VENVS / "triton-perf" / "bin" / "perf_analyzer", "-m", model, "-i", protocol, "-u", getattr(server, protocol),
               "--concurrency-range", str(concurrency), "--measurement-interval", str(interval), "--stability-percentage", "999",
               "--max-trials", "10", "--percentile", "50", "--input-data", "random", "-f", out]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300,
                          env={**os.environ, "LD_LIBRARY_PATH": str(perf_libraries())})
    if "larger time window" in done.stdout + done.stderr and interval < LONGEST_MS:
        return analyze(server, model, protocol, concurrency, 2 * interval, folder)
    if done.returncode != 0 or not out.exists():
        raise Failure(f"perf_analyzer ended with {done.returncode} for {server.kind}, {model}, {protocol}, {concurrency} at once:\n"
                      f"{done.stdout[-1500:]}{done.stderr[-1500:]}\nlog of the server:\n{server.tail(10)}")
    return results.read_csv(out)


def outputs_of(server, model, rows):
    client = tritonclient.http.InferenceServerClient(server.http)
    x = tritonclient.http.InferInput(model.input, [rows, *model.dims], "FP32")
    x.set_data_from_numpy(model.sample(rows))
    result = client.infer(model.name, [x])
    name = result.get_response()["outputs"][0]["name"]
    return result.as_numpy(name)


def compare(running, models):
    """The same numbers from all servers, alone and in a batch."""
    for model in models:
        for rows in (1, 4):
            base = outputs_of(running[results.PEER], model, rows)
            for kind, server in running.items():
                got = outputs_of(server, model, rows)
                rel = float(np.abs(got - base).max() / np.abs(base).max()) if got.shape == base.shape else float("inf")
                if not rel <= MAX_REL_DIFF:
                    raise Failure(f"{kind} differs from {results.PEER} in {model.name} by {rel:.3g} of the largest element (allowed {MAX_REL_DIFF:g})")


def version_of(server):
    return json.loads(server.get("/v2")[1])["version"]


def show(row):
    print(f"    {row['runtime']:<7} {row['per_s']:9.0f}/s  p50 {row['p50_ms']:8.2f} ms  p99 {row['p99_ms']:8.2f} ms  ratio {row['ratio']:.2f} "
          f"({row['ratio_p10']:.2f} to {row['ratio_p90']:.2f})", flush=True)


def start_all(args, models, stack, folder):
    running = {}
    for kind in args.servers:
        made = Path(folder) / kind
        backend = "python" if kind == "python" else "metal_mps"
        repository.make(made, backend, models, args.instances, args.threads, ROOT / ".models", Path(__file__).parent / "python_model.py")
        log = ROOT / "build" / "logs" / f"bench-serving-{kind}.log"
        running[kind] = stack.enter_context(servers.start(kind, made, log, wait="/v2/health/ready"))
    return running


def measure(args, running, cases, folder):
    rows = []
    for number, (model, protocol, concurrency) in enumerate(cases, 1):
        print(f"[{number}/{len(cases)}] {model}, {protocol}, {concurrency} at once", flush=True)
        rounds = {kind: [] for kind in running}
        for turn in range(args.rounds):
            kinds = list(running)
            for kind in kinds[turn % len(kinds):] + kinds[:turn % len(kinds)]:
                time.sleep(PAUSE_S)
                rounds[kind].append(analyze(running[kind], model, protocol, concurrency, args.interval, folder))
        new = results.rows_of(model, protocol, concurrency, rounds)
        for row in new:
            show(row)
        rows += new
    return rows


def write(out, rows, about, versions, memory):
    out.mkdir(parents=True, exist_ok=True)
    data = {"machine": about, "peer": results.PEER, "memory_mb": memory, "rows": rows}
    (out / "serving.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    (out / "serving.md").write_text(results.markdown(rows, about, versions, memory))
    (out / "serving.svg").write_text(results.svg(rows, about))


def main():
    args = parse_args()
    about = {**report.machine(ROOT), "instances": args.instances, "threads": args.threads}
    if about["load_average"] > 0.5:
        print(f"note: the machine is busy (load average {about['load_average']}): times will be longer and ratios less certain")
    models = [m for m in repository.MODELS if m.name in args.models]
    cases = [(m.name, p, c) for m in models for p in args.protocols for c in args.concurrency]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="anymps-bench-") as folder, ExitStack() as stack:
        try:
            running = start_all(args, models, stack, folder)
            compare(running, models)
            rows = measure(args, running, cases, folder)
            compare(running, models)
        except (Failure, servers.ServerError) as error:
            sys.exit(f"scripts/bench serving: {error}\nNothing was written.")
        memory = {kind: round(server.memory_mb("VmHWM"), 1) for kind, server in running.items()}
        versions = ", ".join(f"{results.TITLES[kind]} {version_of(server)}" for kind, server in running.items())
    write(args.out, rows, about, versions, memory)
    where = args.out.relative_to(ROOT) if args.out.is_relative_to(ROOT) else args.out
    print(f"wrote {where}/serving.json, .md and .svg in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
