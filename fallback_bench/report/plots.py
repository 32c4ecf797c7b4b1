# SPDX-License-Identifier: Apache-2.0
"""The plots, as SVG that follows the reader's light or dark colours and needs nothing else."""

import math
from html import escape

STYLE = """
  svg { color-scheme: light dark; font: 13px system-ui, sans-serif; background: #fff }
  text { fill: #24292f } .small { font-size: 11px; fill: #6a737d } .title { font-size: 15px; font-weight: 600 }
  .line { stroke: #d8dee4 } .link { stroke: #afb8c1; stroke-width: 2 }
  .a { fill: #8c959f } .b { fill: #cf5c36 } .c { fill: #2d7d9a }
  @media (prefers-color-scheme: dark) {
    svg { background: #161b22 } text { fill: #e6edf3 } .small { fill: #9da7b3 } .line { stroke: #30363d } .link { stroke: #57606a }
    .a { fill: #8b949e } .b { fill: #f0805a } .c { fill: #58b5d6 }
  }"""
WIDTH, LEFT, RIGHT, ROW, TOP = 600, 185, 30, 24, 64
MOST = 15


def _svg(height, title, note, parts):
    head = f'<text class="title" x="16" y="26">{escape(title)}</text><text class="small" x="16" y="45">{escape(note)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">\n'
        f"<style>{STYLE}</style>\n{head}\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _name(op, y):
    return f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(op)}</text>'


def _short(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 10 else f"{value:.0f}"


def pain(rows):
    """Bars of penalty x demand."""
    rows = rows[:MOST]
    most = max((row["pain"] for row in rows), default=1)
    parts = []
    for i, row in enumerate(rows):
        y = TOP + i * ROW + ROW // 2
        width = max((WIDTH - LEFT - RIGHT - 110) * row["pain"] / most, 2)
        told = f"{_short(row['pain'])}  ({row['penalty']:.2f} × {row['demand']})"
        parts += [_name(row["op"], y), f'<rect class="b" x="{LEFT}" y="{y - 8}" width="{width:.1f}" height="16" rx="3"/>']
        parts.append(f'<text class="small" x="{LEFT + width + 8:.1f}" y="{y + 4}">{told}</text>')
    return _svg(TOP + len(rows) * ROW + 16, "Top Pain", "penalty of the fallback × how many ask for the op", parts)


def times(rows):
    """Dots per op on a scale of powers of ten: the CPU, MPS with fallback, and a kernel of its own."""
    rows = rows[:MOST]
    values = [row[name] for row in rows for name in ("cpu_us", "mps_us", "native_us") if row[name] == row[name]]
    low, high = (math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))) if values else (0, 1)
    high = max(high, low + 1)
    bottom = TOP + 24 + len(rows) * ROW

    def x(value):
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(value) - low) / (high - low)

    parts = []
    for power in range(low, high + 1):
        at = x(10.0**power)
        unit = f"{10**power:g} µs" if power < 3 else f"{10 ** (power - 3):g} ms"
        parts.append(f'<line class="line" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP + 16}" y2="{bottom}"/>')
        parts.append(f'<text class="small" x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{unit}</text>')
    for i, (kind, told) in enumerate((("a", "CPU"), ("b", "MPS, falling back"), ("c", "MPS, own kernel"))):
        at = LEFT + (0, 65, 190)[i]
        parts.append(f'<circle class="{kind}" cx="{at + 6}" cy="{TOP}" r="5"/><text class="small" x="{at + 16}" y="{TOP + 4}">{told}</text>')
    for i, row in enumerate(rows):
        y = TOP + 24 + i * ROW + ROW // 2
        dots = [(kind, row[name]) for kind, name in (("a", "cpu_us"), ("b", "mps_us"), ("c", "native_us")) if row[name] == row[name]]
        ends = sorted(x(value) for _, value in dots)
        parts += [_name(row["op"], y), f'<line class="link" x1="{ends[0]:.1f}" x2="{ends[-1]:.1f}" y1="{y}" y2="{y}"/>']
        parts += [f'<circle class="{kind}" cx="{x(value):.1f}" cy="{y}" r="5"/>' for kind, value in dots]
    return _svg(bottom + 30, "One call", "geometric mean over shapes and dtypes; the scale is logarithmic", parts)
