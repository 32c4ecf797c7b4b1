# SPDX-License-Identifier: Apache-2.0
"""From a map of text probabilities to boxes: regions, their smallest rectangles, grown to the size of the text.

The detector (DB, "differentiable binarization") marks the core of each line of text; a box is that core grown again by
an amount that follows from its area and perimeter.
"""
from dataclasses import dataclass

import numpy as np


@dataclass
class Box:
    """A rectangle that may be turned: its centre, width (along the text), height, and the width's direction."""

    centre: np.ndarray
    width: float
    height: float
    along: np.ndarray  # of length 1

    def corners(self):
        """Top left, top right, bottom right, bottom left."""
        x, y = self.along * self.width / 2, np.array([-self.along[1], self.along[0]]) * self.height / 2
        return np.array([self.centre - x - y, self.centre + x - y, self.centre + x + y, self.centre - x + y])


def regions(mask):
    """The connected regions of a mask (4 neighbours), each as the (x, y) of its pixels.

    Runs of a row are joined with those of the row above that they touch.
    """
    parent, runs, above = [], [], []

    def root(i):
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    for y, row in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], row.view(np.int8), [0]])))
        here = []
        for start, end in edges.reshape(-1, 2):
            number = len(parent)
            parent.append(number)
            runs.append((y, start, end))
            for other, first, last in above:
                if first < end and last > start:
                    parent[root(other)] = root(number)
            here.append((number, start, end))
        above = here
    found = {}
    for number, (y, start, end) in enumerate(runs):
        x = np.arange(start, end)
        found.setdefault(root(number), []).append(np.stack([x, np.full_like(x, y)], 1))
    return [np.concatenate(parts) for parts in found.values()]


def hull(points):
    """The convex hull of points, in order (Andrew's monotone chain)."""
    points = np.unique(points, axis=0)

    def half(points):
        chain = []
        for p in points:
            while len(chain) > 1 and np.linalg.det([chain[-1] - chain[-2], p - chain[-2]]) <= 0:
                chain.pop()
            chain.append(p)
        return chain[:-1]

    if len(points) < 3:
        return points
    return np.array(half(points) + half(points[::-1]))


def smallest_box(points):
    """The smallest rectangle around the pixels: one of its sides lies on a side of their hull."""
    # A pixel is a square: its corners count.
    corners = np.concatenate([points + offset for offset in ((0, 0), (1, 0), (0, 1), (1, 1))])
    shape = hull(corners.astype(np.float64))
    best = None
    for side in np.roll(shape, -1, 0) - shape:
        along = side / np.linalg.norm(side)
        across = np.array([-along[1], along[0]])
        u, v = shape @ along, shape @ across
        width, height = np.ptp(u), np.ptp(v)
        if best is None or width * height < best[0]:
            centre = along * (u.min() + u.max()) / 2 + across * (v.min() + v.max()) / 2
            best = width * height, centre, width, height, along
    _, centre, width, height, along = best
    # Text runs from left to right; a box that stands upright is turned when it is cut out.
    if abs(along[0]) < abs(along[1]):
        along, width, height = np.array([along[1], -along[0]]), height, width
    return Box(centre, width, height, along if along[0] > 0 else -along)


def find_boxes(probability, threshold=0.3, least_score=0.6, least_side=4, growth=1.6):
    """Boxes around the text, from top to bottom, with the mean probability inside each."""
    found = []
    for points in regions(probability > threshold):
        box = smallest_box(points)
        score = float(probability[points[:, 1], points[:, 0]].mean())
        if min(box.width, box.height) < least_side or score < least_score:
            continue
        grow = box.width * box.height * growth / (2 * (box.width + box.height))
        found.append((Box(box.centre, box.width + 2 * grow, box.height + 2 * grow, box.along), score))
    return sorted(found, key=lambda item: (round(item[0].centre[1] / 10), item[0].centre[0]))
