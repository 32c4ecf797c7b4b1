# SPDX-License-Identifier: Apache-2.0
"""Programs of ExecuTorch in Python: every bundle of tests/data/executorch against the outputs that it expects."""
from pathlib import Path

import anymps
import numpy as np
import pytest

DATA = Path(__file__).resolve().parents[2] / "data" / "executorch"
BUNDLES = sorted(path for path in DATA.glob("*/*.pte") if path.parent.name != "large")


def tolerance(info, method):
    (found,) = (m for m in info["methods"] if m["name"] == method)
    half = any(o["key"] == "use_fp16" and o["value"] == "1" for d in found["delegates"] for o in d["options"])
    return 2e-2 if half else 1e-4


@pytest.mark.parametrize("path", BUNDLES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_bundle(path):
    program = anymps.Program(path)
    info = program.info()
    assert program.methods
    for method in program.methods:
        tests = program.tests(method)
        assert tests
        allowed = tolerance(info, method)
        for inputs, expected in tests:
            model = anymps.compile(program.graph(method))  # a case expects what a fresh program gives
            results = model(*[i.numpy() for i in inputs])
            results = list(results) if isinstance(results, (list, tuple)) else [results]
            assert len(results) == len(expected)
            assert any(wanted is not None for wanted in expected)
            for found, wanted in zip(results, expected, strict=True):
                if wanted is None:  # the case says nothing of this output
                    continue
                wanted = wanted.numpy()
                assert found.dtype == wanted.dtype
                np.testing.assert_allclose(found, wanted, rtol=allowed, atol=allowed)


def test_methods():
    path = DATA / "portable" / "methods.pte"
    program = anymps.Program(path)
    assert program.methods == ["decode", "encode"]
    assert repr(program) == "<anymps.Program with decode, encode>"
    with pytest.raises(anymps.NotFound, match='there is no method "forward"; it has: decode, encode'):
        anymps.load(path)
    half = anymps.load(path, method="decode")
    np.testing.assert_allclose(half(np.array([2, 4, 6], np.float32)), [2, 3, 4])
    assert anymps.load(path.read_bytes(), method="decode")(np.zeros(3, np.float32))[0] == 1


def test_buffers_go_on_from_run_to_run():
    model = anymps.load(DATA / "portable" / "buffer_with_content.pte")
    x = np.array([1, 0, -1], np.float32)
    for run in range(1, 4):
        np.testing.assert_allclose(model(x), 2 * (np.array([1, 2, 3]) + run * x))


def test_extents_above_the_bound_are_refused():
    model = anymps.load(DATA / "portable" / "dynamic.pte")
    assert model(np.zeros((8, 2, 3), np.float32)).shape == (16, 3)
    with pytest.raises(anymps.InvalidArgument, match=r"input 'input0' has extent 9 on axis 0, but at most 8 is allowed"):
        model(np.zeros((9, 2, 3), np.float32))


def test_bytes_and_errors():
    data = (DATA / "portable" / "segmented.pte").read_bytes()
    assert anymps.Program(data).methods == ["forward"]
    with pytest.raises(anymps.Corrupt, match="neither a program"):
        anymps.Program(b"nothing of the kind")
    with pytest.raises(anymps.Corrupt, match="BundledProgram"):
        anymps.Program(data[:200])
    with pytest.raises(anymps.NotFound):
        anymps.Program("no/such/file.pte")


def test_a_program_becomes_other_files(tmp_path):
    program = anymps.Program(DATA / "portable" / "segmented.pte")
    ((inputs, expected),) = program.tests()
    for name in ("model.mps", "model.onnx"):
        program.graph().save(tmp_path / name)
        found = anymps.load(tmp_path / name)(*[i.numpy() for i in inputs])
        np.testing.assert_allclose(found, expected[0].numpy(), rtol=1e-5, atol=1e-5)


def test_weights_outside(tmp_path):
    program = DATA / "portable" / "weights_outside.pte"
    weights = program.with_suffix(".ptd").read_bytes()
    with pytest.raises(anymps.Unsupported, match="open the program from its path"):
        anymps.Program(program.read_bytes())
    copy = tmp_path / "model.pte"
    copy.write_bytes(program.read_bytes())
    with pytest.raises(anymps.NotFound, match="there is neither .*model.ptd nor .*_default_external_constant.ptd"):
        anymps.Program(copy)
    for name in ("_default_external_constant.ptd", "model.ptd"):
        (tmp_path / name).write_bytes(weights)
        assert anymps.Program(copy).info()["methods"][0]["constants"] == 4
    for size in range(0, len(weights), 7):
        (tmp_path / "model.ptd").write_bytes(weights[:size])
        with pytest.raises(anymps.Corrupt, match="model.ptd"):
            anymps.Program(copy)
    (tmp_path / "model.ptd").write_bytes(weights.replace(b"a.weight", b"z.weight"))
    with pytest.raises(anymps.Corrupt, match='has no data "a.weight"'):
        anymps.Program(copy)
