#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the results of test runs and keeps them in one table (a TSV file) for scripts/test.

    suites.py junit TABLE SUITE REPORT.xml SECONDS STATUS   adds a row from a JUnit report (ctest's or pytest's)
    suites.py row TABLE SUITE SECONDS PASSED FAILED SKIPPED
    suites.py show TABLE                                    prints it; status 1 if anything failed

A ctest test that is a GoogleTest program counts as its cases, read from its output.
"""
import re
import sys
import xml.etree.ElementTree as ET

OK = re.compile(r"^\[       OK \] ", re.M)
SKIPPED = re.compile(r"^\[  SKIPPED \] \S+ \(\d+ ms\)", re.M)
FAILED = re.compile(r"^\[  FAILED  \] (\S+?)(?:, where | \(\d+ ms\)|$)", re.M)
WHY_LINES, WHY_WIDTH = 6, 200


def indented(lines):
    return "".join(f"\n        {line[:WHY_WIDTH]}" for line in lines[:WHY_LINES])


def why_google(output, name):
    """What a GoogleTest case printed between its RUN and its FAILED."""
    _, begins, rest = output.partition(f"[ RUN      ] {name}\n")
    return indented([line for line in rest.partition("\n[  FAILED  ]")[0].splitlines() if line.strip()]) if begins else ""


def why_pytest(case):
    """Of a pytest report the lines that say what was expected, and the place."""
    problem = next((part for part in (case.find("failure"), case.find("error")) if part is not None), None)
    lines = (problem.text or "").splitlines() if problem is not None else []
    told = [line[1:].strip() for line in lines if line.startswith("E ") and line[1:].strip()]
    place = [line for line in lines if re.match(r"\S+:\d+: ", line)][-1:]
    return indented([*told[:WHY_LINES - 1], *place])


def count_case(case):
    """(passed, what failed and why, skipped) of one <testcase>."""
    name = case.get("name")
    output = case.findtext("system-out") or ""
    bad = case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail"
    passed, skipped = len(OK.findall(output)), len(SKIPPED.findall(output))
    failed = sorted({f for f in FAILED.findall(output) if "." in f})
    if passed or skipped or failed:
        if bad and not failed:
            failed = [f"{name} (ended before its cases did)"]
        return passed, [f"{name}: {f}{why_google(output, f)}" for f in failed], skipped
    if bad:
        return 0, [name + why_pytest(case)], 0
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return 0, [], 1
    return 1, [], 0


def count_junit(path):
    passed, failed, skipped = 0, [], 0
    for case in ET.parse(path).getroot().iter("testcase"):
        p, f, s = count_case(case)
        passed, failed, skipped = passed + p, failed + f, skipped + s
    return passed, failed, skipped


def add_row(table, suite, seconds, passed, failed, skipped):
    with open(table, "a", encoding="utf-8") as out:
        out.write(f"{suite}\t{passed}\t{failed}\t{skipped}\t{seconds}\n")


def add_junit(table, suite, report, seconds, status):
    try:
        passed, failed, skipped = count_junit(report)
    except (OSError, ET.ParseError) as error:
        passed, failed, skipped = 0, [f"{suite}: no report ({error})"], 0
    if int(status) != 0 and not failed:
        failed = [f"{suite}: ended with status {status}"]
    for name in failed[:50]:
        print(f"    failed: {name}")
    if len(failed) > 50:
        print(f"    ... and {len(failed) - 50} more")
    add_row(table, suite, seconds, passed, len(failed), skipped)


def show(table):
    with open(table, encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    width = max(len(r[0]) for r in rows)
    print(f"\n{'suite':<{width}}  {'passed':>8}  {'failed':>6}  {'skipped':>7}  {'seconds':>7}")
    for suite, passed, failed, skipped, seconds in rows:
        print(f"{suite:<{width}}  {passed:>8}  {failed:>6}  {skipped:>7}  {seconds:>7}")
    passed, failed, skipped = (sum(int(r[i]) for r in rows) for i in (1, 2, 3))
    print(f"\n{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


def main():
    command, *args = sys.argv[1:]
    if command == "junit":
        return add_junit(*args)
    if command == "row":
        return add_row(*args)
    if command == "show":
        return show(*args)
    sys.exit(f"suites.py: no such command: {command}")


if __name__ == "__main__":
    sys.exit(main())
