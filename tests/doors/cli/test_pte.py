# SPDX-License-Identifier: Apache-2.0
"""The command line with programs of ExecuTorch."""
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ANYMPS = ROOT / "build" / "bin" / "anymps"
DATA = ROOT / "tests" / "data" / "executorch"
SEGMENTED, METHODS = DATA / "portable" / "segmented.pte", DATA / "portable" / "methods.pte"


def anymps(*args):
    return subprocess.run([str(ANYMPS), *map(str, args)], capture_output=True, text=True, timeout=120)


def test_inspect_says_what_is_inside():
    done = anymps("inspect", DATA / "kinds" / "MPSConv2D_f32.pte")
    assert done.returncode == 0, done.stderr
    for part in ("ExecuTorch bundled program", "method forward", "delegate 0: MPSBackend", "MPSConv2D", "test cases",
                 "graph of forward", "conv"):
        assert part in done.stdout, done.stdout


def test_inspect_json():
    report = json.loads(anymps("inspect", METHODS, "--json").stdout)
    assert [m["name"] for m in report["methods"]] == ["decode", "encode"]
    assert report["methods"][1]["operators"]["aten::relu.out"] == 1
    assert report["methods"][1]["tests"] == 1


def test_inspect_pictures_and_plans(tmp_path):
    assert anymps("inspect", SEGMENTED, "--svg", tmp_path / "g.svg").returncode == 0
    assert "<svg" in (tmp_path / "g.svg").read_text()
    done = anymps("inspect", METHODS, "--method", "encode", "--plan")
    assert done.returncode == 0 and done.stdout.strip(), done.stderr
    assert "%output0" in anymps("inspect", METHODS, "--method", "decode", "--graph").stdout


def test_a_program_that_cannot_be_run_can_be_looked_at(tmp_path):
    broken = SEGMENTED.read_bytes().replace(b"aten::relu\0", b"aten::rely\0")
    path = tmp_path / "broken.pte"
    path.write_bytes(broken)
    done = anymps("inspect", path)
    assert done.returncode == 0, done.stderr
    assert "aten::rely.out" in done.stdout
    assert "cannot be run: " in done.stdout and "not supported: aten::rely.out (instruction" in done.stdout
    assert anymps("run", path, "--random-inputs").returncode == 1


def test_extents_above_the_bound_are_refused():
    dynamic = DATA / "portable" / "dynamic.pte"
    assert "input0.0<=8" in anymps("inspect", dynamic).stdout
    dims = ["--dim", "input0.1=2", "--dim", "input0.2=3", "--random-inputs"]
    done = anymps("run", dynamic, "--dim", "input0.0=8", *dims)
    assert done.returncode == 0 and "output0: f32[16,3]" in done.stdout, done.stderr
    done = anymps("run", dynamic, "--dim", "input0.0=9", *dims)
    assert done.returncode == 1 and "input 'input0' has extent 9 on axis 0, but at most 8 is allowed" in done.stderr


def test_run_and_methods():
    assert anymps("run", SEGMENTED, "--random-inputs").returncode == 0
    done = anymps("run", METHODS, "--random-inputs")
    assert done.returncode == 1 and "it has: decode, encode" in done.stderr
    done = anymps("run", METHODS, "--method", "decode", "--random-inputs")
    assert done.returncode == 0 and "output0: f32[3]" in done.stdout, done.stderr
    done = anymps("run", ROOT / "examples" / "models" / "softmax.onnx", "--method", "forward", "--random-inputs")
    assert done.returncode == 1 and "only .pte files have methods" in done.stderr


def test_convert(tmp_path):
    for name in ("model.mps", "model.onnx"):
        done = anymps("convert", METHODS, "--method", "encode", "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert anymps("run", tmp_path / name, "--random-inputs").returncode == 0
