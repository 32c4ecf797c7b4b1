# SPDX-License-Identifier: Apache-2.0
"""Turns measurements into the rows of models.json, the Markdown table and the plot."""
import json
import os
import platform
import statistics
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from chart import bar_chart

PEER = "onnxruntime"
TITLES = {"anymps": "AnyMPS", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "before": "AnyMPS before"}
PEERS = ("onnxruntime", "openvino")
COLOURS = {"anymps": "#1f6fb2", "onnxruntime": "#b9bec6", "openvino": "#7d858f", "before": "#d99a3d"}


def percentile(values, share):
    """Linear interpolation between the sorted values."""
    values = sorted(values)
    place = (len(values) - 1) * share
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def ratio_fields(result, peer):
    """Time relative to the peer, taken round by round: median and the 10th to 90th percentile."""
    ratios = [ours / theirs for ours, theirs in zip(result.medians(), peer.medians())]
    return {"ratio": round(statistics.median(ratios), 3), "ratio_p10": round(percentile(ratios, 0.1), 3),
            "ratio_p90": round(percentile(ratios, 0.9), 3)}


def better_peer(results, figure=statistics.median):
    """The name of the peer whose runs have the smaller median, or other figure; None where there is no peer."""
    return min((name for name in results if name in PEERS), key=lambda name: figure(results[name].runs()), default=None)


def rows_of(model, threads, results):
    rows = []
    for runtime, result in results.items():
        ms = result.runs()
        row = {"model": model.name, "batch": model.batch, "threads": threads, "runtime": runtime,
               "version": result.version, "median_ms": round(statistics.median(ms), 3), "min_ms": round(min(ms), 3),
               "p90_ms": round(percentile(ms, 0.9), 3), "runs": len(ms), "rounds": len(result.rounds)}
        if model.seq:
            row["seq"] = model.seq
        row.update({key: round(value, 1) for key, value in result.fresh.items()})
        row.update(max_abs_diff=float(f"{result.max_abs_diff:.3g}"), max_rel_diff=float(f"{result.max_rel_diff:.3g}"),
                   idle_cpu=round(result.idle_cpu, 3))
        if PEER in results:
            row.update(ratio_fields(result, results[PEER]))
        rows.append(row)
    return rows


def git_commit(root):
    run = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty", "--exclude", "*"],
                         capture_output=True, text=True)
    return run.stdout.strip()


def machine(root):
    """What the numbers depend on; nothing that names the machine or its user."""
    info = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        info.setdefault(key.strip(), value.strip())
    flags = info.get("flags", "").split()
    known = ("sse4_2", "avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")
    return {"cpu": info.get("model name", platform.machine()), "cpu_family": f"{info.get('cpu family')}/{info.get('model')}",
            "cores": os.cpu_count(), "isa": [f for f in known if f in flags],
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            "virtual": "hypervisor" in flags, "system": f"Linux {platform.release().split('-')[0]}",
            "python": platform.python_version(), "load_average": round(os.getloadavg()[0], 2),
            "commit": git_commit(root), "date": datetime.now(timezone.utc).strftime("%Y-%m-%d")}


def save(out, name, result, page):
    """NAME.json and NAME.md in a folder, which is made."""
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (out / f"{name}.md").write_text(page)


def describe(about):
    return (f"{about['cpu']} ({'/'.join(about['isa'])}), {about['cores']} cores, {about['memory_gib']} GiB, {about['date']}, "
            f"commit {about['commit']}")


def versions_of(rows):
    versions = {row["runtime"]: row["version"] for row in rows}
    return ", ".join(f"{TITLES[runtime]} {version}" for runtime, version in versions.items())


def title_of(row):
    return f"{row['model']}, {row['threads']} thread{'s' if row['threads'] > 1 else ''}"


def cases_of(rows):
    cases = {}
    for row in rows:
        cases.setdefault(title_of(row), {})[row["runtime"]] = row
    return cases


def markdown(rows, about):
    out = ["# Model latency and memory", "",
           f"{versions_of(rows)}. {describe(about)}. Batch 1; sequence 128 for the encoders; f32.", "",
           "Written by `scripts/bench models`: the runtimes take turns in one run, each in a process of its own. `ratio` is the time "
           "relative to ONNX Runtime in the same round (median, 10th to 90th percentile of the rounds; below 1 is faster). Peak RSS is of a "
           "fresh process that loads the model and runs it ten times, Python included for the peers (`of which before loading`). "
           "`load` is from the file's path to a ready session.", "",
           "| model | threads | runtime | median ms | min | p90 | ratio | peak RSS MB | of which before loading | load ms | max rel. difference |",
           "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for row in rows:
        ratio = f"{row['ratio']:.2f} ({row['ratio_p10']:.2f}–{row['ratio_p90']:.2f})" if "ratio" in row else ""
        name = f"**{TITLES[row['runtime']]}**" if row["runtime"] == "anymps" else TITLES[row["runtime"]]
        out.append(f"| {row['model']} | {row['threads']} | {name} | {row['median_ms']:.2f} | {row['min_ms']:.2f} | "
                   f"{row['p90_ms']:.2f} | {ratio} | {row['peak_rss_mb']:.0f} | {row['baseline_rss_mb']:.0f} | "
                   f"{row['load_ms']:.0f} | {row['max_rel_diff']:.1e} |")
    return "\n".join(out) + "\n"


def svg(rows, about):
    """Two panels, both relative to the peer (1.0): latency and peak memory."""
    runtimes = list(dict.fromkeys(r["runtime"] for r in rows))
    base = PEER if PEER in runtimes else runtimes[0]
    latency, memory = [], []
    for title, case in cases_of(rows).items():
        unit_ms, unit_mb = case[base]["median_ms"], case[base]["peak_rss_mb"]
        latency.append((title, [(r, case[r].get("ratio", case[r]["median_ms"] / unit_ms), f"{case[r]['median_ms']:.1f} ms")
                                for r in runtimes]))
        memory.append((title, [(r, case[r]["peak_rss_mb"] / unit_mb, f"{case[r]['peak_rss_mb']:.0f} MB") for r in runtimes]))
    panels = [(f"Latency relative to {TITLES[base]} (shorter is faster; median in ms)", latency, 1.0),
              (f"Peak memory of the process relative to {TITLES[base]} (shorter is smaller)", memory, 1.0)]
    subtitle = f"{about['cpu']}, {about['cores']} cores; batch 1, sequence 128 for the encoders, f32; {about['date']}"
    return bar_chart("AnyMPS beside its peers", subtitle, panels, {r: (TITLES[r], COLOURS[r]) for r in runtimes})
