#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the speech in a sound with silero-vad, and draws its probability over the waveform.

    voice_activity.py [SOUND.wav] [--out voice_activity.svg] [--threshold 0.5]

Without a sound it makes one: silence, a voice, a beep, hiss, the voice again. The sound is read as a stream would be:
32 ms at a time, the model's memory handed from one step to the next.
"""
import argparse
import sys
import wave
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models"))

import wheels  # noqa: E402
from speech import RATE, say  # noqa: E402

import anymps  # noqa: E402

WINDOW, CONTEXT = 512, 64  # samples of a step, and of the step before that the model sees again


def demo():
    """(samples, [(from s, to s, what)])"""
    rng = np.random.default_rng(3)
    seconds = {"silence": 0.8, "beep": 0.9, "hiss": 0.9}
    t = np.arange(int(RATE * seconds["beep"])) / RATE
    parts = [("silence", np.zeros(int(RATE * seconds["silence"]))), ("voice", say("halo mai neim is mono")),
             ("beep", 0.4 * np.sin(2 * np.pi * 880 * t)), ("silence", np.zeros(int(RATE * seconds["silence"]))),
             ("hiss", 0.15 * rng.standard_normal(int(RATE * seconds["hiss"]))), ("voice", say("wi ar tolkin hir", 190, 1)),
             ("silence", np.zeros(int(RATE * seconds["silence"])))]
    ends = np.cumsum([len(samples) for _, samples in parts]) / RATE
    spans = [(end - len(samples) / RATE, end, what) for end, (what, samples) in zip(ends, parts)]
    sound = np.concatenate([samples for _, samples in parts])
    return (sound + 0.003 * rng.standard_normal(len(sound))).astype(np.float32), spans


def read_wav(path):
    with wave.open(str(path)) as file:
        if file.getframerate() != RATE or file.getsampwidth() != 2:
            sys.exit(f"{path}: {file.getframerate()} Hz, {8 * file.getsampwidth()} bit; needed are {RATE} Hz and 16 bit")
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels())
    return samples.mean(1).astype(np.float32) / 32768


def probabilities(model, sound):
    """Of each window of the sound: how probable speech is."""
    state, context, found = np.zeros((2, 1, 128), np.float32), np.zeros(CONTEXT, np.float32), []
    for at in range(0, len(sound) - WINDOW + 1, WINDOW):
        window = sound[at:at + WINDOW]
        output, state = model(np.concatenate([context, window])[None], state, np.int64(RATE))
        context = window[-CONTEXT:]
        found.append(float(output[0, 0]))
    return np.array(found)


def spans_of(probability, threshold, least_s=0.15):
    """Where it is speech: [(from s, to s)]. Gaps and spans shorter than `least_s` are passed over."""
    step, spans = WINDOW / RATE, []
    for i in np.flatnonzero(probability >= threshold):
        if spans and i * step - spans[-1][1] < least_s:
            spans[-1][1] = (i + 1) * step
        else:
            spans.append([i * step, (i + 1) * step])
    return [(a, b) for a, b in spans if b - a >= least_s]


def svg(sound, probability, spans, parts, threshold):
    width, wave_height, curve_height, left, top = 860, 130, 110, 46, 34
    seconds = len(sound) / RATE

    def x(t):
        return left + t / seconds * width

    middle, base = top + wave_height / 2, top + wave_height + 24 + curve_height
    out = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {left + width + 16} {base + 34:.0f}' "
           "font-family='DejaVu Sans, Helvetica, Arial, sans-serif' font-size='12' fill='#24292f'>",
           f"<rect width='{left + width + 16}' height='{base + 34:.0f}' fill='#ffffff'/>"]
    for start, end in spans:
        out.append(f"<rect x='{x(start):.1f}' y='{top}' width='{x(end) - x(start):.1f}' height='{base - top:.0f}' fill='#dff3e4'/>")
    # The waveform: of each column of pixels the lowest and the highest sample.
    columns = np.array_split(sound, width)
    low, high = ([middle - wave_height / 2 * f(c) / np.abs(sound).max() for c in columns] for f in (np.max, np.min))
    line = [f"{left + i},{y:.1f}" for i, y in enumerate(low)] + [f"{left + width - 1 - i},{y:.1f}" for i, y in enumerate(reversed(high))]
    out.append(f"<polygon points='{' '.join(line)}' fill='#1f6fb2' stroke='#1f6fb2' stroke-width='0.7'/>")
    for start, end, what in parts:
        out.append(f"<text x='{x((start + end) / 2):.1f}' y='{top - 12}' text-anchor='middle'>{what}</text>"
                   f"<line x1='{x(start):.1f}' y1='{top - 8}' x2='{x(start):.1f}' y2='{base:.0f}' stroke='#d0d7de'/>")
    for value in (0, 0.5, 1):
        y = base - value * curve_height
        out.append(f"<text x='{left - 6}' y='{y + 4:.1f}' text-anchor='end'>{value:g}</text>"
                   f"<line x1='{left}' y1='{y:.1f}' x2='{left + width}' y2='{y:.1f}' stroke='#d0d7de' stroke-dasharray='2 3'/>")
    y = base - threshold * curve_height
    out.append(f"<line x1='{left}' y1='{y:.1f}' x2='{left + width}' y2='{y:.1f}' stroke='#b35900' stroke-dasharray='5 3'/>")
    points = " ".join(f"{x((i + 0.5) * WINDOW / RATE):.1f},{base - p * curve_height:.1f}" for i, p in enumerate(probability))
    out.append(f"<polyline points='{points}' fill='none' stroke='#1a7f37' stroke-width='1.8'/>")
    for second in range(int(seconds) + 1):
        out.append(f"<text x='{x(second):.1f}' y='{base + 18:.0f}' text-anchor='middle'>{second} s</text>")
    out.append(f"<text transform='translate(12 {base - curve_height / 2:.0f}) rotate(-90)' text-anchor='middle'>speech</text>")
    return "\n".join([*out, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sound", nargs="?", type=Path, help="a .wav file of 16 kHz, 16 bit")
    parser.add_argument("--out", type=Path, default=Path("voice_activity.svg"))
    parser.add_argument("--threshold", type=float, default=0.5)
    args = parser.parse_args()
    folder, _ = wheels.fetch("silero_vad")
    model = anymps.load(folder / "silero_vad.onnx")
    sound, parts = (read_wav(args.sound), []) if args.sound else demo()
    probability = probabilities(model, sound)
    spans = spans_of(probability, args.threshold)
    for start, end in spans:
        print(f"speech from {start:5.2f} s to {end:5.2f} s")
    print(f"{sum(b - a for a, b in spans):.2f} s of {len(sound) / RATE:.2f} s are speech")
    args.out.write_text(svg(sound, probability, spans, parts, args.threshold))
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
