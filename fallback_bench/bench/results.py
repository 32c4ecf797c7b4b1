# SPDX-License-Identifier: Apache-2.0
"""results/*.csv: a file per op, a row per shape and dtype. A file is there when all of its op is measured."""

import csv
import math
import os
from pathlib import Path

import pandas

TIMES = [f"{which}_{what}_us" for which in ("cpu", "mps", "native") for what in ("median", "iqr")]
NUMBERS = [*TIMES, "penalty", "overhead_us", "worth", "bytes_copied", "samples", "demand"]
COLUMNS = [
    "op", "shape", "dtype", "status", "fell_back", "fallback_ops", *TIMES, "penalty", "overhead_us", "worth", "bytes_copied",
    "samples", "demand", "links", "torch", "os", "device", "transfer", "timer", "key",
]  # fmt: skip


def derive(row):
    """What follows from the medians: how many times, and how much, longer than on the CPU; and than with a kernel of its own."""
    cpu, mps, native = (row.get(f"{which}_median_us") for which in ("cpu", "mps", "native"))
    if cpu and mps:
        row |= {"penalty": mps / cpu, "overhead_us": mps - cpu}
    if mps and native and row.get("fell_back"):
        row["worth"] = mps / native
    return row


def _text(value):
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return " ".join(value) if isinstance(value, list) else value


def write(path, rows):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with open(part, "w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, COLUMNS, restval="")
        out.writeheader()
        out.writerows({name: _text(value) for name, value in row.items()} for row in rows)
    os.replace(part, path)


def key_of(path):
    """The key that a finished file was written with; None if there is none."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return next(csv.DictReader(file)).get("key")
    except (OSError, StopIteration):
        return None


def read(folder):
    """All rows of a run as a DataFrame."""
    files = sorted(Path(folder).glob("*.csv"))
    frames = [pandas.read_csv(file, dtype="string") for file in files]
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        return pandas.DataFrame(columns=COLUMNS)
    rows = pandas.concat(frames, ignore_index=True).reindex(columns=COLUMNS)
    numbers = rows[NUMBERS].astype("float64")
    rows = rows.fillna("")
    rows[NUMBERS] = numbers
    rows["fell_back"] = rows["fell_back"] == "True"
    return rows
