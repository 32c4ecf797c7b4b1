# SPDX-License-Identifier: Apache-2.0
"""mps_executor_runner as a user meets it: flags, output, verification, files and errors."""
import re
import shutil
import subprocess

import pytest
from door import BUNDLES, EXPORTER_PYTHON, RUNNER, Bundle, has_package, runner, small_bundles

pytestmark = pytest.mark.skipif(not RUNNER.exists(), reason="build/bin/mps_executor_runner is not built")
CONV = BUNDLES / "kinds" / "MPSConv2D_f32.pte"
needs_exporter = pytest.mark.skipif(not has_package(EXPORTER_PYTHON), reason="scripts/env executorch makes the environment")


@pytest.mark.parametrize("bundle", small_bundles(), ids=lambda p: p.stem)
def test_bundles_are_verified_over_three_runs(bundle):
    for method, cases in Bundle(bundle).cases.items():
        for case in range(len(cases)):
            done = runner("--model_path", bundle, "--bundled_program", "--num_runs", 3, "--noprint_output", "--method_name", method,
                          "--testset_idx", case)
            assert done.returncode == 0, done.stdout + done.stderr
            assert done.stdout.endswith("Model verified successfully.\n")


def test_help_tells_every_flag_and_its_default():
    done = runner("--help")
    assert done.returncode == 0
    defaults = dict(re.findall(r"--(\w+) +.*\n +default: (.*)", done.stdout))
    assert defaults["model_path"] == '"model.ff"' and defaults["num_runs"] == "1" and defaults["testset_idx"] == "0"
    assert defaults["etdump_path"] == '"etdump.etdp"' and defaults["debug_output_path"] == '"debug_output.bin"'
    assert defaults["debug_buffer_size"] == "262144"
    for flag in ("bundled_program", "profile", "skip_warmup", "dump_outputs", "dump_intermediate_outputs"):
        assert defaults[flag] == "false"
    assert "anymps" in runner("--version").stdout.lower()


@pytest.mark.parametrize("flags", [["--num_runs", "2"], ["--num-runs", "2"], ["--num_runs=2"], ["-num-runs=2"], ["-num_runs", "2"]])
@pytest.mark.parametrize("bundled", [["--bundled_program"], ["--bundled-program=true"], ["--bundled_program=1"]])
def test_spellings_of_flags(flags, bundled, tmp_path):
    done = runner(f"--model_path={CONV}", *bundled, "--profile", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^\[Run \d\] Inference time: \d+\.\d{3} milliseconds$", done.stdout, re.M)) == 3  # one to warm up
    assert "Model verified successfully." in done.stdout


@pytest.mark.parametrize("off", ["--nobundled_program", "--bundled_program=false", "--bundled_program=0"])
def test_flags_can_be_turned_off(off):
    done = runner("--model_path", CONV, "--bundled_program", off)
    assert done.returncode == 0, done.stderr
    assert "Loading non-bundled program..." in done.stdout and "verified" not in done.stdout


@pytest.mark.parametrize("args, says", [
    ([], "no options provided"),
    (["--model_pth", "x"], "did you mean --model_path?"),
    (["--warp"], "--help lists"),
    (["--num_runs", "many"], "--num_runs=many: not an integer"),
    (["--num_runs"], "'--num_runs' is missing its value"),
    (["--profile=maybe"], "neither true nor false"),
    (["--num_runs=0"], "at least 1"),
    (["--num_runs=3000000000"], "out of range, it must be from -2147483648 to 2147483647"),
    (["--debug_buffer_size=99999999999999999999"], "out of range"),
    (["--debug_buffer_size=-1"], "must not be negative"),
    (["model.pte"], "extra command line arguments: model.pte; the program's file goes after --model_path"),
    (["--model_path", "/nowhere/x.pte"], "there is no file /nowhere/x.pte"),
])
def test_wrong_usage_exits_with_2_and_says_what_to_do(args, says):
    done = runner(*args)
    assert done.returncode == 2 and says in done.stderr, done.stderr


def test_profile_shows_each_run_the_average_and_a_table(tmp_path):
    done = runner("--model_path", CONV, "--bundled_program", "--profile", "--num_runs", 4, "--skip_warmup", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^\[Run (\d)\]", done.stdout, re.M) == ["0", "1", "2", "3"]
    assert re.search(r"^Average inference time: \d+\.\d\d milliseconds$", done.stdout, re.M)
    assert re.search(r"^Load time: \d+\.\d{3} milliseconds$", done.stdout, re.M)
    assert re.search(r"^node +op +kernel", done.stdout, re.M) and re.search(r"conv2d_0 +conv ", done.stdout)
    assert (tmp_path / "etdump.etdp").exists()


def test_outputs_are_printed_as_upstream_prints_them():
    done = runner("--model_path", CONV, "--bundled_program")
    assert re.search(r"^Output 0: tensor\(sizes=\[\d+(, \d+)*\], \[", done.stdout, re.M), done.stdout
    sizes = [int(n) for n in re.search(r"sizes=\[([\d, ]+)\]", done.stdout)[1].split(", ")]
    assert tuple(sizes) == Bundle(CONV).cases["forward"][0][1][0].shape
    assert "Output" not in runner("--model_path", CONV, "--print_output=false").stdout


def test_no_files_without_being_asked(tmp_path):
    assert runner("--model_path", CONV, "--bundled_program", cwd=tmp_path).returncode == 0
    assert not list(tmp_path.iterdir())


def test_a_plain_program_runs_on_ones_and_has_nothing_to_verify(tmp_path):
    (tmp_path / "plain.pte").write_bytes(Bundle(CONV).program)
    done = runner("--model_path", tmp_path / "plain.pte")
    assert done.returncode == 0 and "Output 0: tensor(" in done.stdout, done.stderr
    assert done.stdout.split("Output 0")[1] == runner("--model_path", CONV).stdout.split("Output 0")[1]
    done = runner("--model_path", tmp_path / "plain.pte", "--bundled_program")
    assert done.returncode == 1 and "holds no test cases" in done.stderr and "--bundled" in done.stderr


def test_a_test_case_that_is_not_there():
    done = runner("--model_path", CONV, "--bundled_program", "--testset_idx", 7)
    assert done.returncode == 1 and "--testset_idx=7" in done.stderr and "test cases" in done.stderr
    done = runner("--model_path", CONV, "--method_name", "backward")
    assert done.returncode == 1 and "no method 'backward'; it has: forward" in done.stderr


def test_wrong_numbers_fail_with_the_worst_element(tmp_path):
    """One expected element is changed in the bundle's bytes."""
    expected = Bundle(CONV).cases["forward"][0][1][0]
    changed = expected.copy()
    changed.flat[5] += 3
    data = CONV.read_bytes()
    assert data.count(expected.tobytes()) == 1
    (tmp_path / "bad.pte").write_bytes(data.replace(expected.tobytes(), changed.tobytes()))
    done = runner("--model_path", tmp_path / "bad.pte", "--bundled_program", "--num_runs", 2)
    assert done.returncode == 1 and "verified" not in done.stdout
    assert re.search(r"Bundle verification failed \(test case 0\): run 0, output 0: 1 of \d+ elements differ; the worst is "
                     r"\[[\d, ]+\]: expected .*, got .*, allowed ", done.stderr), done.stderr
    assert runner("--model_path", tmp_path / "bad.pte", "--bundled_program", "--atol=4").returncode == 0


@pytest.mark.parametrize("cut", [0, 3, 8, 100, 1000])
def test_truncated_files_are_refused(cut, tmp_path):
    (tmp_path / "cut.pte").write_bytes(CONV.read_bytes()[:cut])
    done = runner("--model_path", tmp_path / "cut.pte", "--bundled_program")
    assert done.returncode == 1 and "cut.pte" in done.stderr, done.stderr


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "x.pte").write_text("This is a letter, not a program, and it is long enough to hold any header.")
    done = runner("--model_path", tmp_path / "x.pte")
    assert done.returncode == 1 and "x.pte" in done.stderr


INSPECT = """
import json, sys, warnings
warnings.simplefilter("ignore")
from executorch.devtools import Inspector
found = Inspector(etdump_path=sys.argv[1], debug_buffer_path=sys.argv[2] if len(sys.argv) > 2 else None)
blocks = []
for block in found.event_blocks:
    events = [dict(name=e.name, raw=e.perf_data.raw if e.perf_data else [], delegated=e.is_delegated_op,
                   shapes=[list(t.shape) for t in e.debug_data]) for e in block.events]
    blocks.append(dict(name=block.name, index=block.bundled_input_index, events=events,
                       outputs=[t.flatten().tolist() for t in block.run_output]))
found.to_dataframe()
print(json.dumps(blocks))
"""


def inspect(*paths):
    import json
    done = subprocess.run([EXPORTER_PYTHON, "-c", INSPECT, *map(str, paths)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@needs_exporter
def test_the_inspector_opens_an_etdump(tmp_path):
    dump = tmp_path / "d.etdp"
    done = runner("--model_path", CONV, "--bundled_program", "--num_runs", 3, "--skip_warmup", "--etdump_path", dump)
    assert done.returncode == 0, done.stderr
    blocks = {block["name"]: block for block in inspect(dump)}
    assert blocks["Default"]["events"][0]["name"] == "Program::load_method"
    run = blocks["Execute"]
    assert run["index"] == 0 and run["events"][0]["name"] == "Method::execute" and len(run["events"][0]["raw"]) == 3
    kernels = [event for event in run["events"] if event["delegated"]]
    assert kernels and all(len(event["raw"]) == 3 for event in kernels)
    for i in range(3):
        assert 0 < sum(event["raw"][i] for event in kernels) <= run["events"][0]["raw"][i]


@needs_exporter
def test_recorded_tensors_come_back(tmp_path):
    import numpy as np
    dump, buffer = tmp_path / "d.etdp", tmp_path / "d.bin"
    done = runner("--model_path", CONV, "--bundled_program", "--dump_intermediate_outputs", "--etdump_path", dump,
                  "--debug_output_path", buffer)
    assert done.returncode == 0, done.stderr
    blocks = [block for block in inspect(dump, buffer) if block["name"] == "Execute"]
    expected = Bundle(CONV).cases["forward"][0][1][0]
    outputs = [block["outputs"] for block in blocks if block["outputs"]]
    np.testing.assert_allclose(outputs[0][0], expected.flatten(), rtol=1e-4, atol=1e-4)
    inside = [event for block in blocks for event in block["events"] if event["shapes"]]
    assert any(event["shapes"] == [list(expected.shape)] for event in inside)


def test_a_debug_buffer_that_is_too_small_says_how_large_it_must_be(tmp_path):
    args = ["--model_path", CONV, "--dump_outputs"]
    done = runner(*args, "--debug_buffer_size", 8, cwd=tmp_path)
    assert done.returncode == 1
    needed = re.search(r"run again with --debug_buffer_size=(\d+)", done.stderr)[1]
    assert runner(*args, "--debug_buffer_size", needed, cwd=tmp_path).returncode == 0
    assert (tmp_path / "debug_output.bin").stat().st_size == int(needed)


@pytest.mark.parametrize("size", [2**31, 3 * 10**9, 2**40])
def test_a_debug_buffer_may_be_large(size, tmp_path):
    """It is a limit: what is recorded takes what it needs."""
    done = runner("--model_path", CONV, "--dump_outputs", "--debug_buffer_size", size, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "debug_output.bin").stat().st_size < 10**6


def test_a_program_with_state_shows_its_first_run():
    """Whatever ran before to warm up, and however often it runs."""
    for name in ("buffer_with_content", "buffer_of_zeros", "changed_input"):
        program = BUNDLES / "portable" / f"{name}.pte"
        first = runner("--model_path", program, "--skip_warmup")
        assert first.returncode == 0, first.stderr
        for flags in ([], ["--num_runs", 3], ["--bundled_program", "--noprint_output", "--num_runs", 2]):
            done = runner("--model_path", program, *flags)
            assert done.returncode == 0, done.stderr
            if "--bundled_program" not in flags:
                assert done.stdout.split("Output 0")[1] == first.stdout.split("Output 0")[1]


def test_a_bundle_may_expect_fewer_outputs_than_there_are():
    done = runner("--model_path", BUNDLES / "portable" / "changed_input.pte", "--bundled_program")
    assert done.returncode == 0 and "Output 1" in done.stdout, done.stderr
    assert done.stdout.endswith("The bundle expects 1 of the 2 outputs: the others were not compared.\n"
                                "Model verified successfully.\n")


def test_a_place_that_cannot_be_written(tmp_path):
    done = runner("--model_path", CONV, "--etdump_path", tmp_path / "no" / "d.etdp")
    assert done.returncode == 1 and "No such file or directory; --etdump_path names another place" in done.stderr


def test_copies_of_a_program_do_not_need_its_name(tmp_path):
    """The tolerance is of the export, not of the file's name as upstream has it."""
    shutil.copy(BUNDLES / "kinds" / "MPSConv2D_f16.pte", tmp_path / "anything.bin")
    assert runner("--model_path", tmp_path / "anything.bin", "--bundled_program").returncode == 0
