# SPDX-License-Identifier: Apache-2.0
"""A small SVG writer for grouped horizontal bars: no dependency, readable on light and dark pages."""
from html import escape

BAR, BAR_GAP, GROUP_GAP = 14, 2, 14
LABEL_WIDTH, PLOT_WIDTH, VALUE_WIDTH, MARGIN = 190, 330, 80, 20
FONT = "font-family='DejaVu Sans, Helvetica, Arial, sans-serif'"


def text(x, y, words, size=12, anchor="start", weight="normal", fill="#24292f"):
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' font-weight='{weight}' "
            f"fill='{fill}' stroke='#ffffff' stroke-width='3' paint-order='stroke'>{escape(words)}</text>")


def rect(x, y, width, height, fill):
    return f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' fill='{fill}'/>"


def panel(x, y, title, groups, mark, legend):
    """One panel of groups [(label, [(series, value, words)])]; returns its elements and the y below it."""
    out = [text(x, y, title, 13, weight="bold")]
    y += 16
    plot, top = x + LABEL_WIDTH, y
    largest = max(value for _, bars in groups for _, value, _ in bars)
    scale = PLOT_WIDTH / max(largest, mark or 0.0)
    if mark:
        bottom = top + sum(len(bars) * (BAR + BAR_GAP) - BAR_GAP + GROUP_GAP for _, bars in groups) - GROUP_GAP
        at = plot + mark * scale
        out.append(f"<line x1='{at:.1f}' y1='{top - 4}' x2='{at:.1f}' y2='{bottom + 4}' stroke='#24292f' "
                   "stroke-width='1' stroke-dasharray='3 3'/>")
    for label, bars in groups:
        height = len(bars) * (BAR + BAR_GAP) - BAR_GAP
        out.append(text(plot - 8, y + height / 2 + 4, label, anchor="end"))
        for series, value, words in bars:
            out.append(rect(plot, y, max(value * scale, 1), BAR, legend[series][1]))
            out.append(text(plot + value * scale + 5, y + BAR - 3, words, 11))
            y += BAR + BAR_GAP
        y += GROUP_GAP - BAR_GAP
    return out, y


def bar_chart(title, subtitle, panels, legend):
    """panels: [(title, groups, value of a dashed line or None)]; legend: {series: (name, colour)}. Returns SVG text."""
    width = MARGIN * 2 + LABEL_WIDTH + PLOT_WIDTH + VALUE_WIDTH
    y = MARGIN + 16
    out = [text(MARGIN, y, title, 17, weight="bold"), text(MARGIN, y + 18, subtitle, 11, fill="#57606a")]
    y += 42
    x = MARGIN
    for name, colour in legend.values():
        out += [rect(x, y - 10, 12, 12, colour), text(x + 17, y, name)]
        x += 32 + 8 * len(name)
    y += 34
    for name, groups, mark in panels:
        elements, y = panel(MARGIN, y, name, groups, mark, legend)
        out += elements
        y += 22
    height = y - 10
    head = (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}' {FONT} "
            f"role='img' aria-label='{escape(title, quote=True)}'>")
    return "\n".join([head, rect(0, 0, width, height, "#ffffff"), *out, "</svg>", ""])
