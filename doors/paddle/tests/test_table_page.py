# SPDX-License-Identifier: Apache-2.0
"""The page of kernels is what the plug-in prints."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_is_current():
    done = subprocess.run([sys.executable, "-m", "paddle_anymps", "kernels"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "generated" / "paddle_kernels.md").read_text(encoding="utf-8")
    assert done.stdout == page, "make it anew with: python -m paddle_anymps kernels > docs/generated/paddle_kernels.md"
    assert int(page.rsplit("\n\n", 1)[1].split()[0]) >= 350
