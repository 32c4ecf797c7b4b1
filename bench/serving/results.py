# SPDX-License-Identifier: Apache-2.0
"""Turns what perf_analyzer measured into rows, a table and a plot, in the style of bench/models."""
import csv
import math
import statistics

from chart import bar_chart
from report import percentile

PEER = "python"
TITLES = {"anymps": "AnyMPS server", "triton": "Triton + our backend", "python": "Triton's Python backend + ONNX Runtime",
          "before": "AnyMPS server before"}
COLOURS = {"anymps": "#1f6fb2", "triton": "#7fb2dd", "python": "#b9bec6", "before": "#d99a3d"}


def read_csv(path):
    """The figures of perf_analyzer's report, which has one line: one level of concurrency."""
    with open(path, newline="") as file:
        row = next(csv.DictReader(file))
    return {"per_s": float(row["Inferences/Second"]), **{f"p{p}_ms": float(row[f"p{p} latency"]) / 1000 for p in (50, 90, 99)}}


def ratio_fields(rounds, peer):
    """Throughput relative to the peer, taken round by round; above 1 is faster."""
    ratios = [ours["per_s"] / theirs["per_s"] for ours, theirs in zip(rounds, peer)]
    return {"ratio": round(statistics.median(ratios), 3), "ratio_p10": round(percentile(ratios, 0.1), 3),
            "ratio_p90": round(percentile(ratios, 0.9), 3)}


def rows_of(model, protocol, concurrency, rounds):
    """`rounds`: {runtime: [{per_s, p50_ms, p90_ms, p99_ms}, one a round]}."""
    rows = []
    for runtime, found in rounds.items():
        row = {"model": model, "protocol": protocol, "concurrency": concurrency, "runtime": runtime, "rounds": len(found)}
        row.update({key: round(statistics.median(r[key] for r in found), 3) for key in found[0]})
        if PEER in rounds:
            row.update(ratio_fields(found, rounds[PEER]))
        rows.append(row)
    return rows


def title_of(row):
    return f"{row['model']}, {row['protocol']}, {row['concurrency']} at once"


def cases_of(rows):
    cases = {}
    for row in rows:
        cases.setdefault(title_of(row), {})[row["runtime"]] = row
    return cases


def mean_ratio(rows, runtime):
    return math.exp(statistics.fmean(math.log(r["ratio"]) for r in rows if r["runtime"] == runtime))


def short_of(rows):
    """Where one of ours has a lower throughput, or a longer median latency, than the peer."""
    words = []
    for title, case in cases_of(rows).items():
        for runtime, row in case.items():
            if runtime == PEER:
                continue
            if row["ratio"] < 1:
                words.append(f"{TITLES[runtime]}, {title}: {row['ratio']:.2f} of its throughput")
            if row["p50_ms"] > case[PEER]["p50_ms"]:
                words.append(f"{TITLES[runtime]}, {title}: median latency {row['p50_ms']:.2f} ms against {case[PEER]['p50_ms']:.2f} ms")
    return words


def markdown(rows, about, versions, memory):
    ours = [r for r in TITLES if r != PEER and any(row["runtime"] == r for row in rows)]
    means = "; ".join(f"{TITLES[r]} {mean_ratio(rows, r):.2f}x" for r in ours)
    short = short_of(rows)
    out = ["# Serving", "",
           f"{versions}. {about['cpu']} ({'/'.join(about['isa'])}), {about['cores']} cores, {about['memory_gib']} GiB, {about['date']}, commit "
           f"{about['commit']}, load average at the start {about['load_average']}. f32, one row a request, dynamic batching up to 32 rows, "
           f"{about['instances']} instance(s) of {about['threads']} thread(s) for each server; the client runs on the same cores.", "",
           "Written by `scripts/bench serving`: perf_analyzer 2.41 asks each server in turn, round by round; `ratio` is the throughput relative "
           "to Triton's Python backend with ONNX Runtime in the same round (median, 10th to 90th percentile of the rounds; above 1 is faster).", "",
           f"Throughput in geometric mean: {means}.", "",
           "Short of the peer: " + ("; ".join(short) + "." if short else "nothing."), "",
           "Memory of the server's processes at its highest, both models loaded: "
           + ", ".join(f"{TITLES[r]} {mb:.0f} MB" for r, mb in memory.items()) + ".", "",
           "| model | protocol | at once | server | requests/s | ratio | p50 ms | p90 ms | p99 ms |", "|---|---|--:|---|--:|--:|--:|--:|--:|"]
    for row in rows:
        name = f"**{TITLES[row['runtime']]}**" if row["runtime"] == "anymps" else TITLES[row["runtime"]]
        ratio = f"{row['ratio']:.2f} ({row['ratio_p10']:.2f}–{row['ratio_p90']:.2f})" if "ratio" in row else ""
        out.append(f"| {row['model']} | {row['protocol']} | {row['concurrency']} | {name} | {row['per_s']:.0f} | {ratio} | {row['p50_ms']:.2f} | "
                   f"{row['p90_ms']:.2f} | {row['p99_ms']:.2f} |")
    return "\n".join(out) + "\n"


def svg(rows, about):
    runtimes = [r for r in TITLES if any(row["runtime"] == r for row in rows)]
    throughput, latency = [], []
    for title, case in cases_of(rows).items():
        throughput.append((title, [(r, case[r]["ratio"], f"{case[r]['per_s']:.0f}/s") for r in runtimes]))
        unit = case[PEER]["p50_ms"]
        latency.append((title, [(r, case[r]["p50_ms"] / unit, f"{case[r]['p50_ms']:.1f} ms") for r in runtimes]))
    panels = [("Requests a second relative to Triton's Python backend (longer is faster)", throughput, 1.0),
              ("Median latency relative to Triton's Python backend (shorter is faster)", latency, 1.0)]
    return bar_chart("Serving", f"{about['cpu']}, {about['cores']} cores, client included; f32, one row a request; {about['date']}", panels,
                     {r: (TITLES[r], COLOURS[r]) for r in runtimes})
