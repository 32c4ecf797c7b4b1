# SPDX-License-Identifier: Apache-2.0
"""Reads deploy/Containerfile and .containerignore."""
import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
IMAGE = re.compile(r"(?P<name>[a-z0-9.-]+\.[a-z]+(/[a-z0-9._-]+)+):(?P<tag>[\w.-]+)")


def instructions():
    """[(stage, instruction, the rest)], lines that go on put together, ${NAME} replaced; the stage is "" before the first FROM."""
    found, stage, text, values = [], "", "", {}
    for line in (DEPLOY / "Containerfile").read_text().splitlines():
        if line.lstrip().startswith("#") or not line.strip():
            continue
        text += line.strip()
        if text.endswith("\\"):
            text = text[:-1]
            continue
        name, _, rest = text.partition(" ")
        if name == "ARG":
            values.update([rest.split("=", 1)])
        rest = re.sub(r"\$\{(\w+)\}", lambda m: values.get(m[1], m[0]), rest)
        if name == "FROM":
            stage = rest.split(" AS ")[1]
        found.append((stage, name, rest))
        text = ""
    return found


def ignore_rules():
    lines = [line.strip() for line in (ROOT / ".containerignore").read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def is_sent(path, rules=None):
    """Whether a build gets the file: the last rule that names it, or a folder that it is in, decides."""
    sent = True
    for rule in rules or ignore_rules():
        keep, pattern = rule.startswith("!"), rule.lstrip("!").strip("/")
        words = "".join({"**/": "(?:.*/)?", "*": "[^/]*"}.get(part, re.escape(part)) for part in re.split(r"(\*\*/|\*)", pattern))
        parts = PurePosixPath(path).parts
        if any(re.fullmatch(words, "/".join(parts[:n])) for n in range(1, len(parts) + 1)):
            sent = keep
    return sent
