#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the text of a picture with the three models of PP-OCR: find the lines, turn them upright, read them.

    ocr.py [PICTURE] [--out ocr.png]

Without a picture it paints one. The result shows the boxes on the picture, and beside it what was read.
"""
import argparse
import sys
import time
from pathlib import Path

import numpy as np
import onnx
from PIL import Image, ImageDraw, ImageFont

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))

import wheels  # noqa: E402
from boxes import find_boxes  # noqa: E402

import anymps  # noqa: E402

LINE_HEIGHT = 48  # of what the classifier and the reader take
LARGEST = 960  # the longer side of what the detector takes


def planes(image):
    """An image as the models take it: blue, green, red planes of numbers in [-1, 1]."""
    return np.asarray(image.convert("RGB"), np.float32).transpose(2, 0, 1)[::-1] / 127.5 - 1


class Reader:
    def __init__(self):
        folder, _ = wheels.fetch("rapidocr_onnxruntime")
        names = ("ch_PP-OCRv4_det_infer", "ch_ppocr_mobile_v2.0_cls_infer", "ch_PP-OCRv4_rec_infer")
        self.detector, self.classifier, self.reader = (anymps.load(folder / f"{name}.onnx") for name in names)
        # The alphabet travels with the reader; class 0 is "no letter", the last one a blank.
        about = {p.key: p.value for p in onnx.load(folder / f"{names[2]}.onnx", load_external_data=False).metadata_props}
        self.alphabet = ["", *about["character"].split("\n"), " "]

    def detect(self, image):
        """The boxes of the lines, in the image's pixels."""
        shrink = min(1, LARGEST / max(image.size))
        size = [max(32, round(side * shrink / 32) * 32) for side in image.size]
        probability = self.detector(planes(image.resize(size, Image.Resampling.BILINEAR))[None])[0, 0]
        scale = np.array(image.size) / size
        found = find_boxes(probability)
        for box, _ in found:
            box.centre, box.width, box.height = box.centre * scale, box.width * scale[0], box.height * scale[1]
        return [box for box, _ in found]

    def cut(self, image, box):
        """The line in a box, lying flat and LINE_HEIGHT high."""
        corners = box.corners()
        if box.height > 1.5 * box.width:  # upright text
            corners = np.roll(corners, 1, 0)
        origin, right, down = corners[0], corners[1] - corners[0], corners[3] - corners[0]
        width = max(LINE_HEIGHT // 2, round(LINE_HEIGHT * np.linalg.norm(right) / np.linalg.norm(down)))
        # Where pixel (x, y) of the line comes from: origin + right * x / width + down * y / LINE_HEIGHT.
        a, d = right / width
        b, e = down / LINE_HEIGHT
        return image.transform((width, LINE_HEIGHT), Image.Transform.AFFINE, (a, b, origin[0], d, e, origin[1]),
                               Image.Resampling.BICUBIC)

    def upright(self, line):
        """The line turned by half a turn if it stands on its head."""
        width = 192
        fitted = line.resize((min(width, line.width), LINE_HEIGHT), Image.Resampling.BILINEAR)
        x = np.zeros((1, 3, LINE_HEIGHT, width), np.float32)
        x[0, :, :, :fitted.width] = planes(fitted)
        return line.rotate(180) if self.classifier(x)[0, 1] > 0.9 else line

    def read(self, line):
        """(text, how sure): the most probable class of each step; repeats and class 0 are left out."""
        steps = self.reader(planes(line)[None])[0]
        classes, sure = steps.argmax(1), steps.max(1)
        kept = (classes != 0) & (classes != np.concatenate([[0], classes[:-1]]))
        return "".join(self.alphabet[c] for c in classes[kept]), float(sure[kept].mean()) if kept.any() else 0.0

    def __call__(self, image):
        lines = [(box, *self.read(self.upright(self.cut(image, box)))) for box in self.detect(image)]
        return [line for line in lines if line[1] and line[2] > 0.5]


def demo():
    """A page with lines of several sizes: one on a dark ground, one turned a little, one upside down."""
    image = Image.new("RGB", (720, 520), "#fbf8f1")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 720, 92), fill="#20415e")

    def font(size):
        return ImageFont.load_default(size)

    draw.text((36, 22), "HARBOUR CAFE", fill="#f4e9d0", font=font(44))
    for row, (what, price) in enumerate((("Espresso", "2.40"), ("Apple cake", "4.80"), ("Fresh orange juice", "3.95"))):
        draw.text((40, 124 + 52 * row), what, fill="#222222", font=font(28))
        draw.text((400, 124 + 52 * row), price, fill="#222222", font=font(28))
    draw.line((40, 292, 480, 292), fill="#888888", width=2)
    draw.text((40, 306), "Total 11.15 EUR", fill="#222222", font=font(34))

    def turned(words, size, fill, angle, at):
        patch = Image.new("RGBA", (360, 60), (0, 0, 0, 0))
        ImageDraw.Draw(patch).text((10, 10), words, fill=fill, font=font(size))
        patch = patch.rotate(angle, Image.Resampling.BICUBIC, expand=True)
        image.paste(patch, at, patch)

    turned("Thank you, come again!", 30, "#a33b20", 12, (40, 360))
    turned("Table 7, Monday 18:30", 26, "#333333", 180, (330, 440))
    return image


def draw_result(image, lines):
    """The picture with the boxes on the left; on the right the text where it was found."""
    result = Image.new("RGB", (image.width * 2 + 12, image.height), "white")
    result.paste(image, (0, 0))
    draw = ImageDraw.Draw(result)
    for box, text, sure in lines:
        corners = box.corners()
        draw.polygon([tuple(c) for c in corners], outline="#1a7f37", width=3)
        size = max(10.0, 0.85 * min(box.height, box.width))
        font = ImageFont.load_default(size)
        while font.getlength(text) > box.width and size > 8:
            size -= 1
            font = ImageFont.load_default(size)
        left, top = corners.min(0)
        middle = box.centre[1]
        draw.text((image.width + 12 + left, middle), text, fill="#0d3b66", font=font, anchor="lm")
        draw.text((image.width + 12 + left, middle + 0.5 * size + 3), f"{sure:.2f}", fill="#8c959f", font=ImageFont.load_default(11))
    draw.rectangle((image.width, 0, image.width + 11, image.height), fill="#d0d7de")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", nargs="?", type=Path)
    parser.add_argument("--out", type=Path, default=Path("ocr.png"))
    args = parser.parse_args()
    reader = Reader()
    image = Image.open(args.picture).convert("RGB") if args.picture else demo()
    start = time.perf_counter()
    lines = reader(image)
    elapsed = time.perf_counter() - start
    for box, text, sure in lines:
        print(f"{sure:.2f}  ({box.centre[0]:4.0f}, {box.centre[1]:4.0f})  {text}")
    print(f"{len(lines)} lines in {elapsed * 1e3:.0f} ms")
    draw_result(image, lines).save(args.out)
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
