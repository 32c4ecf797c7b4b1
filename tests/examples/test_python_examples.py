# SPDX-License-Identifier: Apache-2.0
"""The Python examples: each runs as a user runs it and must find what is in its picture, sound or sentences."""
import os
import subprocess
import sys
import wave
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
sys.path[:0] = [str(ROOT / "build" / "python"), *(str(EXAMPLES / name) for name in ("ocr", "text_similarity", "voice_activity"))]


def run(script, *args, out):
    paths = [str(ROOT / "build" / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run([sys.executable, EXAMPLES / script, *args, "--out", out], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ocr_reads_its_picture(tmp_path):
    from PIL import Image

    printed = run("ocr/ocr.py", out=tmp_path / "ocr.png")
    for line in ("HARBOUR CAFE", "Espresso", "Apple cake", "Fresh orange juice", "2.40", "4.80", "3.95", "Total 11.15 EUR",
                 "Thank you, come again!", "Table 7, Monday 18:30"):
        assert f"  {line}\n" in printed
    assert "10 lines" in printed
    assert Image.open(tmp_path / "ocr.png").size == (1452, 520)


def test_ocr_reads_a_file(tmp_path):
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (300, 80), "white")
    ImageDraw.Draw(image).text((20, 20), "Room 404", fill="black", font=ImageFont.load_default(36))
    image.save(tmp_path / "sign.png")
    assert "Room 404" in run("ocr/ocr.py", tmp_path / "sign.png", out=tmp_path / "out.png")


def test_regions_are_the_connected_ones():
    from boxes import regions

    mask = np.array([[1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]], bool)
    found = sorted(sorted(map(tuple, points)) for points in regions(mask))
    assert found == [[(0, 0), (0, 1), (1, 1), (2, 0), (2, 1)], [(3, 2)]]


def test_smallest_box_of_a_turned_bar():
    from boxes import smallest_box

    y, x = np.mgrid[:80, :120]
    u, v = (x - 60) * 0.8 + (y - 40) * 0.6, (y - 40) * 0.8 - (x - 60) * 0.6
    box = smallest_box(np.argwhere((abs(u) < 40) & (abs(v) < 6))[:, ::-1])
    assert box.centre == pytest.approx([60.5, 40.5], abs=0.5)
    assert (box.width, box.height) == pytest.approx((80, 12), abs=2)
    assert box.along == pytest.approx([0.8, 0.6], abs=0.03)


def test_text_similarity_pairs_what_means_alike(tmp_path):
    lines = run("text_similarity/text_similarity.py", out=tmp_path / "t.svg").splitlines()
    nearest = dict(zip(lines[0:16:2], (line.split("  ")[-1] for line in lines[1:16:2])))
    for one, other in (("A cat is sleeping on the sofa.", "The kitten naps on the couch."),
                       ("Stock markets fell sharply today.", "Shares lost value after the news."),
                       ("How do I bake a chocolate cake?", "A recipe for a dessert with cocoa.")):
        assert nearest[one] == other and nearest[other] == one
    assert ET.parse(tmp_path / "t.svg").getroot().tag.endswith("svg")


def test_one_sentence_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="nothing to be compared with"):
        run("text_similarity/text_similarity.py", "Alone.", out=tmp_path / "t.svg")


def test_wordpiece(tmp_path):
    from wordpiece import WordPiece

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cafe", "play", "##ing", "##s", ",", "!", "中", "un", "##play"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    tokenize = WordPiece(tmp_path / "vocab.txt")
    assert [words[i] for i in tokenize("Café, PLAYING中!")] == ["[CLS]", "cafe", ",", "play", "##ing", "中", "!", "[SEP]"]
    assert [words[i] for i in tokenize("unplays xyz playx")] == ["[CLS]", "un", "##play", "##s", "[UNK]", "[UNK]", "[SEP]"]
    assert len(tokenize("play " * 500, longest=16)) == 16


def speech_of(printed):
    return [tuple(float(word) for word in line.split() if word[0].isdigit())
            for line in printed.splitlines() if line.startswith("speech from")]


def test_voice_activity_finds_the_voice(tmp_path):
    from voice_activity import demo

    found = speech_of(run("voice_activity/voice_activity.py", out=tmp_path / "v.svg"))
    spoken = [(start, end) for start, end, what in demo()[1] if what == "voice"]
    assert len(found) == len(spoken) == 2
    for (start, end), (first, last) in zip(found, spoken):
        assert (start, end) == pytest.approx((first, last), abs=0.15)
    assert ET.parse(tmp_path / "v.svg").getroot().tag.endswith("svg")


def test_voice_activity_of_a_file(tmp_path):
    from speech import RATE, say

    sound = np.concatenate([np.zeros(RATE), say("halo mono"), np.zeros(RATE)])
    with wave.open(str(tmp_path / "sound.wav"), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((sound * 32767).astype("<i2").tobytes())
    (start, end), = speech_of(run("voice_activity/voice_activity.py", tmp_path / "sound.wav", out=tmp_path / "v.svg"))
    assert (start, end) == pytest.approx((1, len(sound) / RATE - 1), abs=0.2)
