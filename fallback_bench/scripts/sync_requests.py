#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes ops/targets.yaml of the comments on PyTorch's issues: which ops are asked for, by how many, in which dtypes and shapes.

    python scripts/sync_requests.py --issues 77764 141287 --out ops/targets.yaml
    python scripts/sync_requests.py --from-file saved.json --out ops/targets.yaml

GH_TOKEN is GitHub's token (without one, 60 requests an hour are allowed), GITHUB_API_URL where its API is. Answers are kept
in .cache/ with their ETags: a page that has not changed is not sent again.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import sys
import time
from collections import defaultdict
from pathlib import Path

import requests
import yaml

from mps_fallback_bench import environment
from mps_fallback_bench.targets import DTYPES, MOST_ELEMENTS

AGREES = ("+1", "heart", "hooray", "rocket", "eyes")
ALIASES = {"half": "float16", "fp16": "float16", "bf16": "bfloat16", "float": "float32", "fp32": "float32", "long": "int64", "double": "float64"}
FACTORIES = ("randn", "rand", "randint", "ones", "zeros", "empty", "full", "tensor", "arange", "linspace")  # of inputs, in examples
MOST_LINKS, MOST_SHAPES = 5, 3


class Failed(Exception):
    """A page that could not be had, and why."""


class GitHub:
    def __init__(self, cache, tries, max_wait):
        self.base = os.environ.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
        self.cache, self.tries, self.max_wait = Path(cache), tries, max_wait
        self.session = requests.Session()
        self.session.headers.update({"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"})
        token = os.environ.get("GH_TOKEN")
        if token:
            self.session.headers["Authorization"] = f"Bearer {token}"
        else:
            print("GH_TOKEN is not set: GitHub allows 60 requests an hour without one", file=sys.stderr)

    def _kept(self, url):
        file = self.cache / (hashlib.sha256(url.encode()).hexdigest()[:24] + ".json")
        try:
            return file, json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return file, None

    def _pause(self, answer, attempt):
        """How many seconds GitHub asks to wait, or None if asking again is no use."""
        if answer is None or answer.status_code >= 500:
            return min(2**attempt, 30)
        limited = answer.headers.get("X-RateLimit-Remaining") == "0" or "Retry-After" in answer.headers
        if answer.status_code not in (403, 429) or not limited and answer.status_code == 403:
            return None
        if "Retry-After" in answer.headers:
            return float(answer.headers["Retry-After"])
        return max(float(answer.headers.get("X-RateLimit-Reset", time.time() + 60)) - time.time(), 0) + 1

    def get(self, url):
        """(content, address of the next page) of a page, as it is now or as it was when it last changed."""
        file, kept = self._kept(url)
        headers = {"If-None-Match": kept["etag"]} if kept and kept["etag"] else {}
        for attempt in range(self.tries):
            try:
                answer, why = self.session.get(url, headers=headers, timeout=30), ""
            except requests.RequestException as error:
                answer, why = None, f"{type(error).__name__}: {error}"
            if answer is not None:
                if answer.status_code == 304:
                    return kept["content"], kept["next"]
                if answer.ok:
                    page = {"etag": answer.headers.get("ETag"), "content": answer.json(), "next": answer.links.get("next", {}).get("url")}
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(json.dumps(page), encoding="utf-8")
                    return page["content"], page["next"]
                why = f"HTTP {answer.status_code} {answer.reason}"
            pause = self._pause(answer, attempt)
            if pause is None or pause > self.max_wait:
                why += f"; the limit of requests is used up for {pause:.0f} s" if pause else ""
                break
            if attempt + 1 < self.tries:
                print(f"{url}: {why}; again in {pause:.0f} s", file=sys.stderr)
                time.sleep(pause)
        raise Failed(f"{url}: {why}")

    def comments(self, repository, issue):
        """The issue itself and all comments on it, as far as they can be had, and what went wrong."""
        start = f"{self.base}/repos/{repository}/issues/{issue}"
        found, url = [], f"{start}/comments?per_page=100"
        try:
            found.append(self.get(start)[0])
            while url:
                page, url = self.get(url)
                found += page
        except Failed as error:
            return found, [str(error)]
        return found, []


def known_ops():
    """Base names of all ATen ops of the installed PyTorch."""
    import torch

    names = torch._C._dispatch_get_all_op_names()
    return {name.removeprefix("aten::").partition(".")[0] for name in names if name.startswith("aten::")}


def ops_in(text, known):
    """Ops that a text names: aten::isin.Tensor_out; without any such, torch.isin, torch.linalg.qr, or `isin` as code."""
    named = re.findall(r"aten::(\w+)", text)
    if not named:
        paths = re.findall(r"\btorch\.((?:nn\.functional\.)?[a-z_]\w*(?:\.[a-z_]\w*)*)", text) + re.findall(r"`([a-z_]\w{3,})(?:\(\))?`", text)
        named = [path.removeprefix("nn.functional.").replace(".", "_") for path in paths]
        named = [name for name in named if name not in FACTORIES]
    found = []
    for name in named:
        name = name if name in known else name.rstrip("_")
        if name in known and name not in found:
            found.append(name)
    return found


def dtypes_in(text):
    words = re.findall(r"\b(?:torch\.)?([a-z]+\d*)\b", text.lower())
    found = [ALIASES.get(word, word) for word in words if word in DTYPES or word in ("half", "fp16", "bf16", "fp32")]
    found += [ALIASES[word] for word in re.findall(r"\btorch\.(float|long|double)\b", text)]
    return list(dict.fromkeys(dtype for dtype in found if dtype in DTYPES))


def shapes_in(text):
    """torch.Size([1, 3]), shape=(1, 3), size [1, 3], torch.randn(1, 3)"""
    lists = re.findall(r"(?:torch\.Size|shape|size)\s*(?:is|of|=|:)?\s*\(?\s*[\[(]\s*(\d+(?:\s*,\s*\d+)*)\s*,?\s*[\])]", text)
    lists += re.findall(r"torch\.(?:randn|rand|ones|zeros|empty)\(\s*\(?(\d+(?:\s*,\s*\d+)*)", text)
    shapes = [[int(size) for size in sizes.split(",")] for sizes in lists]
    found = []
    for shape in shapes:
        elements = 1
        for size in shape:
            elements *= size
        if 0 < elements <= MOST_ELEMENTS and shape not in found:
            found.append(shape)
    return found


def requests_in(comments, known):
    """Op -> demand, links, dtypes and shapes. A comment counts as one, and so does each reaction that agrees with it."""
    found = defaultdict(lambda: {"demand": 0, "links": [], "dtypes": [], "shapes": []})
    for comment in comments:
        # The lists at the top of the issues are the maintainers'; what is quoted was counted where it was said.
        if (comment.get("user") or {}).get("type") == "Bot" or "comments_url" in comment:
            continue
        text = "\n".join(line for line in (comment.get("body") or "").splitlines() if not line.lstrip().startswith(">"))
        weight = 1 + sum((comment.get("reactions") or {}).get(kind, 0) for kind in AGREES)
        dtypes, shapes = dtypes_in(text), shapes_in(text)
        for op in ops_in(text, known):
            entry = found[op]
            entry["demand"] += weight
            entry["links"].append((weight, comment["html_url"]))
            entry["dtypes"] += [dtype for dtype in dtypes if dtype not in entry["dtypes"]]
            entry["shapes"] += [shape for shape in shapes if shape not in entry["shapes"]]
    return found


def entries(found):
    for op, entry in sorted(found.items(), key=lambda item: (-item[1]["demand"], item[0])):
        links = [link for _, link in sorted(entry["links"], key=lambda pair: -pair[0])[:MOST_LINKS]]
        made = {"op": op, "demand": entry["demand"], "links": links}
        if entry["shapes"]:
            made["shapes"] = entry["shapes"][:MOST_SHAPES]
        if entry["dtypes"]:
            made["dtypes"] = entry["dtypes"]
        yield made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--issues", nargs="+", type=int, default=[], metavar="N")
    parser.add_argument("--repository", default="pytorch/pytorch")
    parser.add_argument("--from-file", nargs="+", default=[], metavar="FILE", help="comments as --save writes them, instead of asking GitHub")
    parser.add_argument("--save", metavar="FILE", help="keep the comments as JSON")
    parser.add_argument("--out", default="ops/targets.yaml")
    parser.add_argument("--cache", default=".cache")
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--max-wait", type=float, default=900, help="seconds to wait for the limit of requests at most")
    options = parser.parse_args()
    if not options.issues and not options.from_file:
        parser.error("say --issues or --from-file")

    comments, problems = [], []
    for name in options.from_file:
        try:
            comments += json.loads(Path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            problems.append(f"{name}: {error}")
    if options.issues:
        github = GitHub(options.cache, options.tries, options.max_wait)
        for issue in options.issues:
            had, wrong = github.comments(options.repository, issue)
            comments, problems = comments + had, problems + wrong
    for problem in problems:
        print(problem, file=sys.stderr)
    if not comments:
        sys.exit(f"nothing was read; {options.out} is as it was")
    if options.save:
        Path(options.save).write_text(json.dumps(comments, indent=1), encoding="utf-8")

    ops = list(entries(requests_in(comments, known_ops())))
    made = {"date": datetime.date.today().isoformat(), "torch": environment.torch_version(), "os": environment.system()}
    made |= {"issues": options.issues, "comments": len(comments), "problems": problems}
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("# Made by scripts/sync_requests.py.\n" + yaml.safe_dump({"made": made, "ops": ops}, sort_keys=False, width=120), encoding="utf-8")
    print(f"{out}: {len(ops)} ops in {len(comments)} comments", file=sys.stderr)


if __name__ == "__main__":
    main()
