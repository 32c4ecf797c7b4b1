# SPDX-License-Identifier: Apache-2.0
"""The three READMEs are in step: the same headings, commands and code but for words, and every snippet runs."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import support

DOOR = Path(__file__).resolve().parents[1]
LANGUAGES = {"en": "README.md", "zh": "README.zh.md", "ja": "README.ja.md"}
PAGES = {language: (DOOR / name).read_text(encoding="utf-8") for language, name in LANGUAGES.items()}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
SNIPPETS = [
    (language, index, code)
    for language, page in PAGES.items()
    for index, code in enumerate(code for kind, code in BLOCK.findall(page) if kind == "python")
]


def without_words(code):
    """The code's structure; comments and the text of strings may be in any language."""

    class Blank(ast.NodeTransformer):
        def visit_JoinedStr(self, node):
            node.values = [value for value in self.generic_visit(node).values if isinstance(value, ast.FormattedValue)]
            return node

    return ast.dump(Blank().visit(ast.parse(code)))


@pytest.mark.parametrize("language", ["zh", "ja"])
def test_in_step(language):
    english, other = BLOCK.findall(PAGES["en"]), BLOCK.findall(PAGES[language])
    assert len(english) == len(other) > 10
    for (kind, code), (other_kind, other_code) in zip(english, other, strict=True):
        assert kind == other_kind
        if kind == "python":
            assert without_words(code) == without_words(other_code)
        else:
            assert code == other_code

    def levels(page):
        return re.findall(r"^(#+) ", BLOCK.sub("", page), re.M)

    assert levels(PAGES["en"]) == levels(PAGES[language])
    assert PAGES["en"].count("\n| ") == PAGES[language].count("\n| "), "rows of tables"
    links = [re.findall(r"\]\(([^)]+)\)", page) for page in (PAGES["en"], PAGES[language])]
    assert sorted(links[0]) == sorted(links[1])


@pytest.mark.parametrize("language, index, code", SNIPPETS, ids=[f"{language}-{index}" for language, index, _ in SNIPPETS])
def test_snippets_run(language, index, code):
    result = support.run_python(code, PYTHONIOENCODING="utf-8")
    assert result.returncode == 0, result.stderr
    if "print(" in code:
        assert result.stdout.strip()


def test_the_commands_are_those_of_the_tests():
    """The scripts that the page names exist and run; those that take longer run as tests of their own."""
    commands = [code.strip() for kind, code in BLOCK.findall(PAGES["en"]) if kind == "bash"]
    scripts = [command.split()[1] for command in commands if re.match(r"python \S+\.py$", command)]
    assert scripts == [
        "test_mps_availability.py",
        "test_mps_kernels_quick.py",
        "test/test_mps_kernels_comprehensive.py",
        "test_mps_unary_operators.py",
    ]
    for script in scripts:
        result = subprocess.run(
            [sys.executable, script], cwd=DOOR / "tests", capture_output=True, text=True, timeout=300, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr
    shown = BLOCK.findall(PAGES["en"])
    (quick,) = (code for kind, code in shown if kind == "" and "Quick MPS" in code)
    output = subprocess.run(
        [sys.executable, "test_mps_kernels_quick.py"], cwd=DOOR / "tests", capture_output=True, text=True, timeout=300, check=True
    ).stdout
    numberless = [re.sub(r"\d\.\d+e[+-]\d+", "N", text) for text in (quick.removesuffix("...\n").rstrip(), output)]
    assert numberless[1].startswith(numberless[0])
