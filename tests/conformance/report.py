# SPDX-License-Identifier: Apache-2.0
"""What a run of the suite comes to: as text, as JSON, and as the page docs/generated/onnx_conformance.md."""
import re
from collections import Counter, defaultdict

from . import cases

PAGE = cases.ROOT / "docs" / "generated" / "onnx_conformance.md"
FAILURES = ("refused", "wrong", "crashed", "unpassable")
TITLES = {"anymps": "AnyMPS", "onnxruntime": "ONNX Runtime"}


class Report:
    def __init__(self, backend, tests, results, seconds):
        self.backend, self.seconds = backend, seconds
        # name -> (op, kind, status, reason)
        self.rows = {name: (tests[name].op, tests[name].kind, *results[name][:2]) for name in sorted(tests)}

    def count(self, status):
        return sum(row[2] == status for row in self.rows.values())

    def by_op(self):
        ops = defaultdict(Counter)
        for op, _, status, _ in self.rows.values():
            ops[op][status] += 1
        return dict(sorted(ops.items()))

    def open(self):
        return {name: row for name, row in self.rows.items() if row[2] in FAILURES}

    def print(self, list_failed):
        width = max(len(op) for op in self.by_op())
        print(f"{'op':<{width}}  passed  failed  skipped")
        for op, counts in self.by_op().items():
            failed = sum(counts[s] for s in FAILURES)
            note = ", ".join(f"{counts[s]} {s}" for s in FAILURES[1:] if counts[s])
            print(f"{op:<{width}}  {counts['passed']:>6}  {failed:>6}  {counts['skipped']:>7}  {note}".rstrip())
        if list_failed:
            for name, (_, _, status, reason) in self.open().items():
                print(f"{status:<8} {name}: {reason}")
        failed = {s: self.count(s) for s in FAILURES}
        print(f"\n{TITLES[self.backend]}: {self.count('passed')} passed, {sum(failed.values())} failed "
              f"({', '.join(f'{count} {status}' for status, count in failed.items())}), "
              f"{self.count('skipped')} skipped, of {len(self.rows)} in {self.seconds:.0f} s")

    def json(self):
        return {
            "backend": self.backend,
            "total": len(self.rows),
            "passed": self.count("passed"),
            "failed": sum(self.count(s) for s in FAILURES),
            "skipped": self.count("skipped"),
            "wrong_output": self.count("wrong"),
            "refused": self.count("refused"),
            "crashed": self.count("crashed"),
            "unpassable": self.count("unpassable"),
            "ops": {op: {"passed": c["passed"], "failed": sum(c[s] for s in FAILURES), "skipped": c["skipped"],
                         "wrong_output": c["wrong"]} for op, c in self.by_op().items()},
            "tests": {name: {"op": op, "kind": kind, "status": status, "reason": reason}
                      for name, (op, kind, status, reason) in self.rows.items()},
        }


def plain(reason):
    """A reason for a table: one line, no paths, no marks that Markdown takes for its own."""
    text = re.sub(r"/\S*/", "", reason).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
    return text if len(text) <= 160 else text[:157] + "…"


def page(ours, peer):
    import onnx
    import onnxruntime
    lines = [
        "# ONNX conformance", "",
        f"The backend suite of the `onnx` package {onnx.__version__}: {len(ours.rows)} tests on a CPU. Made by "
        "`python -m tests.conformance.onnx_backend --write`;",
        f"ONNX Runtime {onnxruntime.__version__} ran in the same environment, with newer opsets unlocked "
        "(`ALLOW_RELEASED_ONNX_OPSET_ONLY=0`) and with", "models of a newer IR version offered as version 13. Its "
        "StringNormalizer got the locale C.UTF-8, because en_US.UTF-8 is", "not on every machine.", "",
        "A test is *refused* when there is an error instead of a result, *wrong* when there is a result and it "
        "differs,", "*crashed* when the process ended or took too long, *unpassable* when the suite cannot tell (it compares random",
        "numbers, or cannot compare).", "",
        "| | passed | refused | wrong | crashed | unpassable | skipped |", "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for result in (ours, peer):
        counts = [str(result.count(s)) for s in ("passed", *FAILURES, "skipped")]
        lines.append(f"| {TITLES[result.backend]} | {' | '.join(counts)} |")
    kinds = defaultdict(Counter)
    for who, result in (("ours", ours), ("peer", peer)):
        for _, kind, status, _ in result.rows.values():
            kinds[kind][who] += status == "passed"
            kinds[kind][who + " of"] += 1
    lines += ["", "| kind of test | tests | AnyMPS | ONNX Runtime |", "|---|--:|--:|--:|"]
    lines += [f"| {kind} | {c['ours of']} | {c['ours']} | {c['peer']} |" for kind, c in kinds.items()]
    lines += ["", "## Open", "", f"{len(ours.open())} tests do not pass yet.", "", "| test | op | | reason |", "|---|---|---|---|"]
    lines += [f"| {name} | {op} | {status} | {plain(reason)} |" for name, (op, _, status, reason) in ours.open().items()]
    lines += ["", "## By op", "", "| op | tests | AnyMPS | ONNX Runtime |", "|---|--:|--:|--:|"]
    theirs = peer.by_op()
    for op, counts in ours.by_op().items():
        lines.append(f"| {op} | {sum(counts.values())} | {counts['passed']} | {theirs[op]['passed']} |")
    return "\n".join(lines) + "\n"


def verify(result, text):
    """0 when the page lists the tests that do not pass in this run, and no others."""
    section = text.partition("## Open")[2].partition("## By op")[0]
    listed = dict(re.findall(r"^\| (test_\w+) \| [^|]+ \| (\w+) \|", section, re.M))
    now = {name: row[2] for name, row in result.open().items()}
    for name in sorted(listed.keys() | now.keys()):
        if listed.get(name) != now.get(name):
            print(f"error: {name} is {now.get(name, 'passed')}, the page says {listed.get(name, 'passed')}")
    return 0 if listed == now else 1
