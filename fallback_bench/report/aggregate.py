#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns results/*.csv into a report: Markdown, an HTML page, JSON and plots, beside each other.

    python report/aggregate.py --results_dir results --out report/summary.md
    python report/aggregate.py --results_dir results --compare results_before
"""

import argparse
import json
import sys
from pathlib import Path

import jinja2
import numpy
import pandas
import plots

from mps_fallback_bench import results

RUN = ("torch", "os", "device", "transfer", "timer")
# A time is another one if it moved by more than this, and by more than both runs scatter.
CHANGED = 1.15


def geometric_mean(values):
    values = values.dropna()
    return float(numpy.exp(numpy.log(values).mean())) if len(values) else float("nan")


def by_op(cases):
    """A row per op that fell back, the worst first: its penalty is the geometric mean over shapes and dtypes."""
    rows = []
    for op, group in cases[cases.fell_back].groupby("op", sort=False):
        penalty, demand = geometric_mean(group.penalty), int(group.demand.iloc[0])
        rows.append({
            "op": op,
            "demand": demand,
            "penalty": penalty,
            "pain": penalty * demand,
            "overhead_us": float(group.overhead_us.median()),
            "cpu_us": geometric_mean(group.cpu_median_us),
            "mps_us": geometric_mean(group.mps_median_us),
            "native_us": geometric_mean(group.native_median_us),
            "worth": geometric_mean(group.worth),
            "dtypes": ", ".join(dict.fromkeys(group.dtype)),
            "links": group.links.iloc[0].split(),
        })  # fmt: skip
    return sorted(rows, key=lambda row: (-row["pain"], row["op"]))


def compare(new, old):
    """Cases of both runs whose time on MPS differs by more than it scatters, the slowest-grown first."""
    keys = ["op", "shape", "dtype"]
    both = new.merge(old, on=keys, suffixes=("", "_before"))
    both["change"] = both.mps_median_us / both.mps_median_us_before
    moved = (both.mps_median_us - both.mps_median_us_before).abs() > both[["mps_iqr_us", "mps_iqr_us_before"]].max(axis=1)
    both = both[moved & ((both.change > CHANGED) | (both.change < 1 / CHANGED))]
    columns = [*keys, "mps_median_us_before", "mps_median_us", "change"]
    return both.sort_values("change", ascending=False)[columns].to_dict("records")


def spearman(one, two):
    """How alike two orders of ops are: 1 for the same. Ops that are in one only do not count."""
    common = [op for op in one if op in two]
    if len(common) < 2:
        return float("nan")
    ranks = pandas.Series(range(len(common))), pandas.Series([sorted(common, key=two.index).index(op) for op in common])
    return float(numpy.corrcoef(*ranks)[0, 1])


def summarize(rows, before=None):
    good = rows[rows.status == "ok"]
    bad = rows[rows.status != "ok"]
    top = by_op(good)
    summary = {
        "run": {name: ", ".join(sorted(set(rows[name]) - {""})) for name in RUN},
        "counts": {
            "ops": int(rows[rows.op != ""].op.nunique()),
            "cases": len(good),
            "fell_back": int(good.fell_back.sum()),
            "failed": len(bad),
        },
        "top": top,
        "native": sorted(set(good[~good.fell_back].op) - set(good[good.fell_back].op)),
        "dtypes": {
            dtype: group.sort_values("penalty", ascending=False).to_dict("records")
            for dtype, group in good[good.fell_back].groupby("dtype")
        },
        "problems": bad[["op", "shape", "dtype", "status"]].to_dict("records"),
    }
    if before is not None:
        old = before[before.status == "ok"]
        order, old_order = [row["op"] for row in top], [row["op"] for row in by_op(old)]
        summary["comparison"] = {"changes": compare(good, old), "spearman_top_10": spearman(order[:10], old_order)}
    return summary


def number(value, digits=3):
    if value is None or value != value:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def plain(value):
    """For JSON, which knows no NaN."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, numpy.generic):
        value = value.item()
    return None if isinstance(value, float) and value != value else value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results_dir", default="results")
    parser.add_argument("--out", default="report/summary.md")
    parser.add_argument("--compare", metavar="DIR", help="the results of an earlier run")
    options = parser.parse_args()
    rows = results.read(options.results_dir)
    if not len(rows):
        sys.exit(f"there are no results in {options.results_dir}; bash scripts/bench_all.sh makes them")
    before = results.read(options.compare) if options.compare else None
    if before is not None and not len(before):
        sys.exit(f"there are no results in {options.compare} to compare with")
    summary = summarize(rows, before)

    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    pictures = {"pain": plots.pain(summary["top"]), "times": plots.times(summary["top"])}
    for name, svg in pictures.items():
        out.with_name(f"{out.stem}_{name}.svg").write_text(svg, encoding="utf-8")
    out.with_suffix(".json").write_text(json.dumps(plain(summary), indent=1, allow_nan=False), encoding="utf-8")
    here = jinja2.FileSystemLoader(Path(__file__).parent)
    for template, path, escape in (("page.md.j2", out, False), ("page.html.j2", out.with_suffix(".html"), True)):
        jinja = jinja2.Environment(loader=here, autoescape=escape, trim_blocks=True, lstrip_blocks=True)
        jinja.filters["number"] = number
        text = jinja.get_template(template).render(**summary, stem=out.stem, pictures=pictures, results=options.results_dir)
        path.write_text(text, encoding="utf-8")
    print(f"{out}: {len(summary['top'])} ops that fall back, {len(summary['problems'])} problems")


if __name__ == "__main__":
    main()
