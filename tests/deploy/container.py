# SPDX-License-Identifier: Apache-2.0
"""Reads deploy/Containerfile."""
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def instructions():
    """[(stage, instruction, the rest)], lines that go on put together; the stage is "" before the first FROM."""
    found, stage, text = [], "", ""
    for line in (DEPLOY / "Containerfile").read_text().splitlines():
        if line.lstrip().startswith("#") or not line.strip():
            continue
        text += line.strip()
        if text.endswith("\\"):
            text = text[:-1]
            continue
        name, _, rest = text.partition(" ")
        if name == "FROM":
            stage = rest.split(" AS ")[1]
        found.append((stage, name, rest))
        text = ""
    return found
