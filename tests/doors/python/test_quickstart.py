# SPDX-License-Identifier: Apache-2.0
"""The code of docs/python/quickstart.md runs, and the README's does."""
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = {"docs/python/quickstart.md": {}, "README.md": {"x": np.zeros((2, 4), np.float32)}}


@pytest.mark.parametrize("page", PAGES)
def test_code_blocks_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "model.onnx").symlink_to(ROOT / "examples" / "models" / "softmax.onnx")
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    assert blocks
    names = dict(PAGES[page])
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    printed = capsys.readouterr().out
    for told in re.findall(r"^print\(.*\) +# (\(.*)$", "".join(blocks), re.M):  # what a comment says is printed
        assert told in printed
    if page.startswith("docs"):
        weight, bias = map(float, next(line for line in printed.splitlines() if re.fullmatch(r"[\d.]+ -[\d.]+", line)).split())
        assert abs(weight - 3) < 1e-2 and abs(bias + 1) < 1e-2
        assert "[softmax] axis 5" in printed
