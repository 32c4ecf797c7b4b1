# SPDX-License-Identifier: Apache-2.0
"""What a run comes to: a summary, the ops that are missing first, and the page docs/generated/torch_conformance.md."""
import re
from collections import Counter, defaultdict

from . import DTYPES, FAILURES, KINDS, OUTCOMES

ABSENT = "not in op_db"  # the reason of a case that is none


def outcome_of(answer):
    return "xfail" if answer["xfail"] and answer["outcome"] in FAILURES else answer["outcome"]


def order(key):
    _, dtype, kind = key
    return KINDS.index(kind), list(DTYPES).index(dtype)


def counts(results):
    """{(kind, dtype): Counter of outcomes}; `unexpected` counts passes where upstream expects a failure."""
    table = defaultdict(Counter)
    for (_, dtype, kind), answer in results.items():
        table[kind, dtype][outcome_of(answer)] += 1
        table[kind, dtype]["unexpected"] += answer["xfail"] and answer["outcome"] == "pass"
    return dict(sorted(table.items(), key=lambda item: order((None, item[0][1], item[0][0]))))


def percent(row):
    """Of the cases that upstream does not expect to fail, and that op_db has."""
    of = sum(row[o] for o in ("pass", *FAILURES))
    return f"{100 * row['pass'] / of:.1f}" if of else ""


def summary(results):
    columns = [o for o in OUTCOMES if o != "skipped"]
    lines = [f"| | dtype | {' | '.join(columns)} | unexpected success | % |", "|---|---|" + "--:|" * (len(columns) + 2)]
    total = Counter()
    for (kind, dtype), row in counts(results).items():
        total += row
        lines.append(f"| {kind} | {dtype} | {' | '.join(str(row[o]) for o in columns)} | {row['unexpected']} | {percent(row)} |")
    lines.append(f"| all | | {' | '.join(str(total[o]) for o in columns)} | {total['unexpected']} | {percent(total)} |")
    return lines


def missing(results):
    """['aten::op  N cases (an op of op_db)'], the one that stands in the way of most cases first."""
    found = defaultdict(list)
    for (op, _, _), answer in results.items():
        if answer["outcome"] == "refused":
            found[answer["missing"] or answer["reason"].split(": ", 1)[-1][:80]].append(op)
    ranked = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [f"{len(ops):6}  {name}  ({', '.join(sorted(set(ops))[:3])})" for name, ops in ranked]


def tidy(reason):
    text = re.sub(r"/\S*/", "", reason)
    text = re.sub(r" If you want this op to be .*", "", text)
    text = re.sub(r"^sample \d+: ", "", text).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
    return text if len(text) <= 140 else text[:137] + "…"


def open_rows(results):
    """One row for each op, kind and outcome that is not a pass, with all its dtypes."""
    rows = defaultdict(list)
    for (op, dtype, kind), answer in results.items():
        outcome = outcome_of(answer)
        if outcome != "pass" and answer["reason"] != ABSENT:
            word = f"xfail ({answer['outcome']})" if outcome == "xfail" else outcome
            rows[op, KINDS.index(kind), word].append((list(DTYPES).index(dtype), dtype, answer["missing"] or tidy(answer["reason"])))
    for (op, kind, word), found in sorted(rows.items()):
        found.sort()
        yield f"| {op} | {KINDS[kind]} | {word} | {' '.join(d for _, d, _ in found)} | {found[0][2]} |"


def page(off, on, version):
    lines = ["# PyTorch conformance", "",
             f"Torch {version}'s own op database (`op_db`) on the device `mps`, compared with the CPU: all sample inputs, in the way of",
             "upstream's `test_mps.py` and with its tolerances. A case is an op in one dtype and one direction, and passes when all of its",
             "samples agree. Made by `python -m tests.doors.torch.opinfo`.", "",
             "A case is *refused* when there is an error that says so instead of a result, *wrong* when there is a result and it differs,",
             "*xfail* when it fails and upstream expects its own MPS device to fail too. The percentage leaves these out.", "",
             "## Fallback off", "", *summary(off)]
    if on:
        lines += ["", "## Fallback on", "", "With `PYTORCH_ENABLE_MPS_FALLBACK=1` the CPU computes what is missing.", "", *summary(on)]
    lines += ["", "## Open", "", "Everything that does not pass with the fallback off; what is not listed here passes. A case is *skipped* when the CPU has nothing to compare with.", "",
              "| op | | | dtypes | first missing op, or reason |", "|---|---|---|---|---|", *open_rows(off)]
    if on:
        lines += ["", "## Open with the fallback on", "", "| op | | | dtypes | first missing op, or reason |", "|---|---|---|---|---|", *open_rows(on)]
    return "\n".join(lines) + "\n"


def rows_of(text):
    """{(op, dtype, kind): (outcome, reason)} of the cases that the page does not call passed."""
    section = text.partition("## Open\n")[2].partition("\n## ")[0]
    found = {}
    for op, kind, outcome, dtypes, reason in re.findall(r"^\| (\S+) \| (\w+) \| ([^|]+) \| ([\w ]+) \| (.*) \|$", section, re.M):
        found.update({(op, dtype, kind): (outcome, reason) for dtype in dtypes.split()})
    return found


def listed(text):
    """{(op, dtype, kind): outcome} of the same."""
    return {key: outcome for key, (outcome, _) in rows_of(text).items()}


def as_printed(text, keys, expects):
    """The results that the page was printed of; `expects(key)`: whether upstream expects a failure."""
    open_cases, results = rows_of(text), {}
    for key in keys:
        outcome, reason = open_cases.get(key, ("pass", ""))
        if inner := re.fullmatch(r"xfail \((\w+)\)", outcome):
            outcome = inner[1]
        results[key] = {"outcome": outcome, "reason": reason.replace("\\|", "|"), "missing": "", "notes": [], "xfail": expects(key)}
    return results


def verify(results, text):
    """Messages for every case that is worse than the page says, and for every crash and timeout."""
    known, bad = listed(text), []
    if "# PyTorch conformance" not in text:
        return ["there is no page to compare with"]
    for key, answer in sorted(results.items()):
        outcome = outcome_of(answer)
        if outcome in ("wrong", "crash", "timeout") and not known.get(key, "").startswith(outcome):
            bad.append(f"{' '.join(key)}: {outcome}: {answer['reason']}")
        elif outcome != "pass" and answer["reason"] != ABSENT and key not in known:
            bad.append(f"{' '.join(key)}: {outcome}, the page says that it passes: {answer['reason']}")
    return bad
