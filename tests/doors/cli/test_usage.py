# SPDX-License-Identifier: Apache-2.0
"""Wrong usage ends with exit code 2 and names the option, in every command; nothing is done."""
import pytest

from tests.doors.cli.test_cli import ANYMPS, ROOT, anymps

MODEL = ROOT / "examples" / "models" / "softmax.onnx"
HUGE = "99999999999999999999999"
WITH_MODEL = ("run", "bench", "profile", "inspect", "compile")
WITH_INPUTS = ("run", "bench", "profile")
# option: values that are wrong
MODEL_OPTIONS = {"--threads": ["-1", "abc", "2x", "1.5", "", HUGE, "1025", " 1", "0x10"], "--level": ["2", "-1", "yes", HUGE], "--device": ["gpu", "CPU"]}
INPUT_OPTIONS = {"--dim": ["N", "=4", "N=", "N=abc", "N=-1", "N=4x", "N=1.5", f"N={HUGE}"], "--input": ["x", "=x.npy", "x="],
                 "--seed": ["-1", "abc", "18446744073709551616", HUGE, "1e3"]}
OWN_OPTIONS = {
    "run": {"--top": ["-1", "abc", HUGE], "--output-dir": [""]},
    "bench": {"--runs": ["0", "-1", "abc", HUGE], "--warmup": ["-1", "abc", HUGE], "--concurrency": ["0", "-2", "abc", HUGE, "4097"],
              "--seconds": ["-1", "nan", "inf", "abc", "1s", "1e400"]},
    "profile": {"--runs": ["0", "-1", "abc", HUGE], "--trace": [""]},
    "inspect": {"--dim": INPUT_OPTIONS["--dim"], "--svg": [""]},
    "compile": {"--output": ["", "x.onnx"], "--quantize": ["", "int3", "INT8"], "--samples": ["-1", "abc", HUGE], **INPUT_OPTIONS},
}


def values():
    for command in WITH_MODEL:
        options = {**MODEL_OPTIONS, **(INPUT_OPTIONS if command in WITH_INPUTS else {}), **OWN_OPTIONS[command]}
        for option, wrong in options.items():
            for value in wrong:
                yield command, option, value
    yield "convert", "--output", "x.pte"
    yield "convert", "--output", "x"


def test_values_of_every_option():
    failures = []
    for command, option, value in values():
        done = anymps(command, MODEL, option, value)
        if done.returncode != 2 or option not in done.stderr or "--help" not in done.stderr or done.stdout:
            failures.append((command, option, value, done.returncode, done.stderr))
    assert not failures


def test_the_table_has_every_option_with_a_number_or_a_form():
    """An option that is added with a number must be in the table."""
    for command in WITH_MODEL:
        told = anymps(command, "--help").stdout
        listed = {**MODEL_OPTIONS, **(INPUT_OPTIONS if command in WITH_INPUTS else {}), **OWN_OPTIONS[command]}
        for line in told.splitlines():
            names = [word for word in line.split()[:1] if word.startswith("-")]
            if names and any(kind in line.split()[1:2] for kind in ("INT", "UINT", "FLOAT")) or "NAME=" in line[:60]:
                assert any(option in names[0].split(",") for option in listed), line


@pytest.mark.parametrize("args", [
    [], ["fly"], ["run"], ["bench"], ["profile"], ["inspect"], ["compile"], ["convert"], ["convert", MODEL], ["completion", "csh"],
    *([command, MODEL, "--fly"] for command in (*WITH_MODEL, "convert")),
    *([command, MODEL, "extra"] for command in WITH_MODEL),
    *([command, MODEL, "--threads"] for command in WITH_MODEL),
    *([command, MODEL, "--threads", "1", "--threads", "2"] for command in WITH_MODEL),
    ["ops", "--fly"], ["ops", "softmax", "--json"], ["ops", "--json", "--markdown"], ["ops", "a", "b"], ["doctor", "--fly"],
    ["doctor", "more"], ["completion", "bash", "zsh"], ["--fly"],
    ["bench", MODEL, "--runs", "3", "--seconds", "1"],
    ["run", MODEL, "--random-inputs", "--dim", "N=1", "--dim", "N=2"],
    ["run", MODEL, "--input", "x=a.npy", "--input", "x=b.npy"],
    ["inspect", MODEL, "--plan", "--memory", "--json"], ["inspect", MODEL, "--dim", "N=2"],
    ["convert", MODEL, "-o", MODEL],
], ids=lambda args: " ".join(str(getattr(a, "name", a)) for a in args) or "nothing")
def test_unknown_missing_and_contradictory(args):
    done = anymps(*args)
    assert done.returncode == 2 and done.stderr and not done.stdout, (args, done.returncode, done.stdout, done.stderr)


@pytest.mark.skipif(not ANYMPS.with_name("anymps-server").exists(), reason="built without the server")
@pytest.mark.parametrize("args", [["--fly"], [], ["--model-repository=x", "--http-port=abc"], ["--model-repository=x", f"--http-port={HUGE}"]])
def test_serve(args):
    done = anymps("serve", *args)
    assert done.returncode == 2 and done.stderr


def test_an_option_that_may_be_repeated_takes_one_value():
    done = anymps("run", "--dim", "N=2", MODEL, "--random-inputs")
    assert done.returncode == 0 and "f32[2,4]" in done.stdout, done.stderr


def test_right_values_at_the_edge():
    for args in (["--threads", "0"], ["--seed", "18446744073709551615"], ["--dim", "N=0"], ["--threads", "010"]):
        assert anymps("run", MODEL, "--random-inputs", *args).returncode == 0, args


@pytest.mark.parametrize("extent", ["9223372036854775807", "4611686018427387904", "1099511627776"])
def test_an_extent_that_no_memory_holds(extent):
    done = anymps("run", MODEL, "--random-inputs", "--dim", f"N={extent}")
    assert done.returncode == 1 and done.stderr.startswith("anymps: ["), done.stderr
