# SPDX-License-Identifier: Apache-2.0
"""A small voice: vowels and consonants by formant synthesis, so that the example needs no recording.

A train of pulses (the vocal cords) goes through four resonances (the mouth), whose frequencies glide from sound to
sound; hissing consonants are noise. It is no beauty, but a voice detector takes it for one.
"""
import numpy as np

RATE = 16000
# The first three resonances in Hz, of an average male voice.
FORMANTS = {"a": (730, 1090, 2440), "e": (530, 1840, 2480), "i": (270, 2290, 3010), "o": (570, 840, 2410),
            "u": (300, 870, 2240), "m": (250, 1000, 2200), "n": (250, 1500, 2500), "l": (360, 1300, 2700),
            "r": (420, 1300, 1600), "w": (290, 610, 2150), "y": (260, 2070, 3020)}
HISS = {"s": 0.35, "f": 0.15, "h": 0.2}
SMOOTH_S = 0.04  # how long the mouth takes from one sound to the next


def resonate(x, frequency, bandwidth):
    """A resonance with a frequency for each sample: a filter of second order."""
    radius = np.exp(-np.pi * bandwidth / RATE)
    b, c = 2 * radius * np.cos(2 * np.pi * frequency / RATE), -radius * radius
    y, y1, y2 = np.zeros_like(x), 0.0, 0.0
    for i, gain in enumerate(1 - b - c):
        y[i] = gain * x[i] + b[i] * y1 + c * y2
        y1, y2 = y[i], y1
    return y


def say(sounds, pitch=120, seed=0):
    """Samples in [-1, 1] for a string of the letters above; t k p are pauses in a word, a blank one between words."""
    rng = np.random.default_rng(seed)
    tracks = []  # of each sample: three formants, the voice's and the hiss's strength
    for sound in sounds:
        voiced = 1.0 if sound in "aeiou" else 0.5 if sound in FORMANTS else 0.0
        length = int(RATE * (0.11 if sound in "aeiou " else 0.073))
        tracks.append(np.tile([*FORMANTS.get(sound, FORMANTS["e"]), voiced, HISS.get(sound, 0.0)], (length, 1)))
    window = np.hanning(int(SMOOTH_S * RATE))
    tracks = [np.convolve(track, window / window.sum(), "same") for track in np.concatenate(tracks).T]
    voice, hiss = tracks[3:]
    t = np.arange(len(voice)) / RATE
    melody = pitch * (1 + 0.12 * np.sin(4.4 * t) + 0.04 * np.sin(14.5 * t) - 0.1 * t / t[-1]) + rng.standard_normal(len(t))
    pulses = np.diff(np.floor(np.cumsum(melody / RATE)), prepend=0)
    x = np.convolve(pulses, 8 * np.exp(-np.arange(60) / 8) * np.hanning(60), "same") * voice
    x += 0.02 * rng.standard_normal(len(x)) * voice
    for frequency, bandwidth in zip([*tracks[:3], np.full_like(x, 3500)], (80, 100, 150, 250)):
        x = resonate(x, frequency, bandwidth)
    x = 0.5 * x / np.abs(x).max() + 0.1 * np.diff(rng.standard_normal(len(x)), prepend=0) * hiss
    return x.astype(np.float32)
