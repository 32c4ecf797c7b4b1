#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the folders of src/ and doors/ and which includes which, from the #include lines of the tree.

    house.py > docs/generated/house.svg     the picture at the top of docs/design.md
    house.py --text                         the same arrows as text, for that page

Arrows that follow from others are left out. The rows come from the arrows alone: a folder stands above all that it includes.
"""
import itertools
import random
import sys
from html import escape

from tree import PUBLIC, includes, reduced, sources

# What is in a box, in a few words. A folder without words is an error, and so are words without a folder.
WORDS = {
    "doors/cli": "the command anymps",
    "doors/python": "the package anymps",
    "doors/executorch": "runner, delegate, exporter",
    "doors/paddle": "the device mps of PaddlePaddle",
    "doors/torch": "the device mps of PyTorch",
    "doors/lowering": "kernels of frameworks in ops",
    "doors/triton": "the backend metal_mps",
    "doors/server": "anymps serve",
    "doors/serving": "a model as servers hold it",
    "doors/common": "what several doors share",
    "include/anymps": "the public interface: C, and C++ over it",
    "src/api": "the C interface",
    "src/runtime": "executables, plans, eager calls",
    "src/passes": "rewrites of a graph",
    "src/formats": "model files, in and out",
    "src/graph": "values, nodes, gradients",
    "src/drivers": "kernels and devices",
    "src/ops": "one record per op",
    "src/semantics": "one formula per function",
    "src/memory": "allocator, buffers, plans",
    "src/base": "errors, dtypes, threads, files",
}
WIDTH, BOX, HEIGHT, ROW, GAP, LANE, TOP = 960, 208, 60, 100, 22, 16, 20  # WIDTH: to begin with
STYLE = """
  .page { fill: #ffffff } .box { fill: #f3f6fa; stroke: #7b8794 } .door { fill: #eef7ee; stroke: #6b9a72 } .public { fill: #fdf5e2; stroke: #b08a2e }
  .name { fill: #1b2733; font-size: 14px; font-weight: bold } .words { fill: #44515e; font-size: 11px } .arrow { stroke: #52606d; fill: none } .head { fill: #52606d }
  @media (prefers-color-scheme: dark) {
    .page { fill: #12171d } .box { fill: #1f2933; stroke: #7b8794 } .door { fill: #1c2b20; stroke: #6b9a72 } .public { fill: #2f2713; stroke: #b08a2e }
    .name { fill: #eef2f6 } .words { fill: #b8c2cc } .arrow { stroke: #9aa5b1 } .head { fill: #9aa5b1 }
  }"""


def layers(arrows):
    """Folder -> its row, 0 at the bottom: one more than the highest of what it includes."""
    rows = {}

    def row(folder):
        if folder not in rows:
            rows[folder] = 1 + max((row(to) for to in arrows[folder]), default=-1)
        return rows[folder]

    for folder in sorted(arrows):
        row(folder)
    return rows


def with_lanes(arrows, rows):
    """Arrows of one row each: a longer one passes through lanes, which are (from, to, row)."""
    steps = []
    for folder in sorted(arrows):
        for to in sorted(arrows[folder]):
            chain = [folder, *((folder, to, row) for row in range(rows[folder] - 1, rows[to], -1)), to]
            steps += list(zip(chain, chain[1:]))
    return steps


def crossings(upper, lower, steps):
    above, below = {item: i for i, item in enumerate(upper)}, {item: i for i, item in enumerate(lower)}
    ends = [(above[a], below[b]) for a, b in steps if a in above and b in below]
    return sum((a - c) * (b - d) < 0 for (a, b), (c, d) in itertools.combinations(ends, 2))


def in_order(rows, steps):
    """Rows of boxes and lanes, from the bottom up, ordered so that few arrows cross: each row in turn gets its best order, from several starts."""
    start = [[] for _ in range(max(rows.values()) + 1)]
    for item in sorted({item for step in steps for item in step} | set(rows), key=str):
        start[rows[item] if item in rows else item[2]].append(item)
    chance, best = random.Random(1), None
    for _ in range(12):
        grid = [chance.sample(row, len(row)) for row in start]
        for index in [*range(len(grid)), *reversed(range(len(grid)))] * 2:
            around = [grid[i] if 0 <= i < len(grid) else [] for i in (index + 1, index - 1)]
            grid[index] = min(map(list, itertools.permutations(grid[index])),
                              key=lambda row: crossings(around[0], row, steps) + crossings(row, around[1], steps))
        count = sum(crossings(upper, lower, steps) for lower, upper in zip(grid, grid[1:]))
        if best is None or count < best[0]:
            best = count, grid
    return best[1]


def places(grid, steps):
    """Item -> the middle of it: near the middle of its neighbours, as far as the order of its row allows. And the page's width."""
    half = {item: (LANE if isinstance(item, tuple) else BOX) / 2 for row in grid for item in row}
    near = {item: [a if b == item else b for a, b in steps if item in (a, b)] for item in half}
    at = {item: WIDTH * (i + 1) / (len(row) + 1) for row in grid for i, item in enumerate(row)}
    for _ in range(60):
        for row in grid:
            wanted = [sum(at[n] for n in near[item]) / len(near[item]) if near[item] else at[item] for item in row]
            left, right, edge = [], [], GAP
            for item, x in zip(row, wanted):
                left.append(max(x, edge + half[item]))
                edge = left[-1] + half[item] + GAP
            edge = WIDTH - GAP
            for item, x in zip(reversed(row), reversed(wanted)):
                right.append(min(x, edge - half[item]))
                edge = right[-1] - half[item] - GAP
            for item, low, high in zip(row, left, reversed(right)):
                at[item] = (low + high) / 2
    # The house above the public headers and the one below are each moved to the middle of the page.
    halls = [[item for item in at if item != PUBLIC and str(item).lstrip("('").startswith(side)] for side in ("doors/", "src/")]
    ends = [(min(at[item] - half[item] for item in hall), max(at[item] + half[item] for item in hall)) for hall in halls]
    width = round(max(high - low for low, high in ends)) + 2 * GAP
    middle = {item: at[item] + width / 2 - (low + high) / 2 for hall, (low, high) in zip(halls, ends) for item in hall}
    return {**middle, PUBLIC: width / 2}, width


def label(folder):
    return folder.removeprefix("src/")


def inner(folder):
    """`cpu 119, null 1, reference 62`: the folders inside, if they are few."""
    counts = {}
    for path in sources(folder):
        if len(path.parts) > 3 and folder.startswith("src/"):
            counts[path.parts[2]] = counts.get(path.parts[2], 0) + 1
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) if 0 < len(counts) < 4 else ""


def box(folder, x, y, page):
    width = page - 2 * GAP if folder == PUBLIC else BOX
    kind = "public" if folder == PUBLIC else "door" if folder.startswith("doors/") else "box"
    count = len(sources(folder))
    lines = [WORDS[folder], inner(folder)]
    out = [f'<rect class="{kind}" x="{x - width / 2:.1f}" y="{y}" width="{width}" height="{HEIGHT}" rx="5"/>',
           f'<text class="name" x="{x:.1f}" y="{y + (20 if lines[1] else 27)}">{escape(label(folder))}'
           f'<tspan class="words" font-weight="normal" dx="6">{count} file{"s" * (count != 1)}</tspan></text>']
    for i, line in enumerate(filter(None, lines)):
        out.append(f'<text class="words" x="{x:.1f}" y="{y + (37 if lines[1] else 46) + 16 * i}">{escape(line)}</text>')
    return out


def picture(arrows):
    if missing := set(arrows) ^ set(WORDS):
        raise SystemExit(f"house.py: say what is in these folders, or take their words away: {', '.join(sorted(missing))}")
    # The public headers stand between those that use them and what implements them, so this one arrow is drawn upwards.
    drawn = {folder: targets - {PUBLIC} if folder == "src/api" else set(targets) for folder, targets in arrows.items()}
    drawn[PUBLIC] = {"src/api"}
    rows = layers(drawn)
    steps = with_lanes(drawn, rows)
    grid = in_order(rows, steps)
    at, width = places(grid, steps)

    def y(item):
        return TOP + (len(grid) - 1 - (rows[item] if item in rows else item[2])) * ROW

    out = []
    ends = {item: sorted((a for a, b in steps if b == item), key=lambda a: at[a]) for item in at}
    starts = {item: sorted((b for a, b in steps if a == item), key=lambda b: at[b]) for item in at}

    def spread(items, item, middle):
        return middle + (items.index(item) - (len(items) - 1) / 2) * 26

    for a, b in steps:
        lane_a, lane_b = isinstance(a, tuple), isinstance(b, tuple)
        x1 = at[b] if a == PUBLIC else at[a] if lane_a else spread(starts[a], b, at[a])
        x2 = at[a] if b == PUBLIC else at[b] if lane_b else spread(ends[b], a, at[b])
        y1, y2 = y(a) + HEIGHT, y(b)
        bend = (y2 - y1) / 2
        if a == PUBLIC:
            out.append(f'<path class="arrow" stroke-dasharray="4 3" d="M{x1:.1f} {y2}V{y1 + 7}"/>')
            out.append(f'<path class="head" d="M{x1:.1f} {y1}l-4.5 9h9z"/>')
            continue
        out.append(f'<path class="arrow" d="M{x1:.1f} {y1}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2 - (0 if lane_b else 7)}'
                   f'{f"V{y2 + HEIGHT}" if lane_b else ""}"/>')
        if not lane_b:
            out.append(f'<path class="head" d="M{x2:.1f} {y2}l-4.5 -9h9z"/>')
    for folder in sorted(arrows):
        out += box(folder, at[folder], y(folder), width)
    height = TOP * 2 + (len(grid) - 1) * ROW + HEIGHT
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" text-anchor="middle" '
        'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" aria-label="The folders of the project and which includes which">',
        f"<style>{STYLE}\n</style>", f'<rect class="page" width="{width}" height="{height}"/>', *out, "</svg>", ""])


def text(arrows):
    """One line for each folder that includes another: `graph ──> memory, ops`, from the top down."""
    rows = layers({folder: targets - {PUBLIC} for folder, targets in arrows.items()})
    order = sorted((folder for folder in arrows if arrows[folder]), key=lambda f: (not f.startswith("doors"), -rows[f], f))
    width = max(len(label(folder)) for folder in order)
    return "".join(f"{label(folder):<{width}} ──> {', '.join(sorted(map(label, arrows[folder])))}\n" for folder in order)


if __name__ == "__main__":
    arrows = reduced(includes())
    sys.stdout.write(text(arrows) if sys.argv[1:] == ["--text"] else picture(arrows))
