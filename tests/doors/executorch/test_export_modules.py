# SPDX-License-Identifier: Apache-2.0
"""export-pte with modules that are not plain functions of tensors: each works, or is refused with what to do."""

import sys

import pytest

pytest.importorskip("executorch.backends.apple.mps", reason="needs .venvs/executorch: scripts/env executorch")

import torch  # noqa: E402

from anymps_executorch import export_pte, files  # noqa: E402


def quantized():
    """A module that PyTorch 2's quantization made: int8 weights and activations."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    layers = [torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16, 5)]
    inputs = (torch.randn(1, 3, 4, 4),)
    module = torch.export.export(torch.nn.Sequential(*layers).eval(), inputs).module()
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    module = prepare_pt2e(module, quantizer)
    module(*inputs)
    return convert_pt2e(module), inputs


def of(function, *inputs):
    class Module(torch.nn.Module):
        def forward(self, *given):
            return function(*given)

    return lambda: (Module(), inputs)


def adds_to_its_input(x):
    x.add_(1)
    return x * 2


def writes_a_row(x, y):
    x[0] = y
    return x.sum(0) + y


def changes_and_returns_nothing(x):
    x.add_(1)


def fails(x):
    raise ValueError("no numbers today")


def factory_fails():
    raise OSError("no weights here")


X, Y = torch.tensor([[1.0, -2, 3], [4, 5, -6]]), torch.tensor([7.0, 8, 9])
WORK = {
    "changes its input": of(adds_to_its_input, X),
    "changes a row of its input": of(writes_a_row, X, Y),
    "an empty output": of(lambda x: (x[:0], x + 1), X),
    "None among the outputs": of(lambda x: (x + 1, None, x * 2), X),
    "numbers among the outputs": of(lambda x: (x.shape[0], x + 1, 2.5, True), X),
    "a dict": of(lambda x: {"b": x + 1, "a": [x * 2]}, X),
    "in training mode": lambda: (torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Dropout()), (X[:1],)),
    "quantized": quantized,
}
REFUSED = {
    "no output": (of(changes_and_returns_nothing, X), "forward() gives no tensor"),
    "a number alone": (of(lambda x: 3, X), "forward() gives no tensor"),
    "a string": (of(lambda x: (x, "three"), X), "forward() gives a str"),
    "a wrong shape": (lambda: (torch.nn.Linear(4, 3), (X,)), "does not run with f32[2, 3]: RuntimeError: mat1 and mat2"),
    "an exception": (of(fails, X), "ValueError: no numbers today"),
    "a branch on data": (of(lambda x: x if x.sum() > 0 else -x, X), "torch.export cannot trace the module"),
    "a factory that fails": (factory_fails, "fails: OSError: no weights here"),
}


@pytest.fixture
def export(tmp_path, monkeypatch):
    """Exports what a factory gives, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(factory, *options):
        module = type(sys)("given_factory")
        module.factory = factory
        monkeypatch.setitem(sys.modules, "given_factory", module)
        torch.manual_seed(0)
        return export_pte.main(["given_factory:factory", "-o", "made.pte", *options])

    return run


@pytest.mark.parametrize("name", WORK)
def test_works(export, tmp_path, capsys, name):
    """--bundled has the runner verify the file, where it is built."""
    status = export(WORK[name], "--fp32", "--bundled")
    said = capsys.readouterr()
    assert status == 0, said.out + said.err
    assert "greatest difference from the module" in said.out
    assert (tmp_path / "made.pte").read_bytes()[4:8] == b"BP08" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(export, tmp_path, capsys, name):
    factory, message = REFUSED[name]
    assert export(factory, "--bundled") == 1
    said = capsys.readouterr().err
    assert message in said and "Traceback" not in said, said
    assert not list(tmp_path.iterdir())


def test_a_failure_keeps_the_file_of_before(export, tmp_path, capsys, monkeypatch):
    (tmp_path / "made.pte").write_bytes(b"of before")

    def disk_full(path, data):
        with files.new_file(path) as name, open(name, "wb") as out:
            out.write(data[:100])
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(export_pte, "write_file", disk_full)
    assert export(WORK["a dict"]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert (tmp_path / "made.pte").read_bytes() == b"of before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made.pte"]


def test_no_device_is_replaced_by_a_file(tmp_path):
    """A rename would put a file in the place of /dev/null."""
    (tmp_path / "null").symlink_to("/dev/null")
    files.write_file(tmp_path / "null", b"nothing")
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.write_file(tmp_path / "link", b"new")
    assert (tmp_path / "null").is_symlink() and (tmp_path / "null").is_char_device()
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"new"


def test_halves_that_overflow_are_told(export, capsys):
    """Within the module a number is 90000, which halves cannot hold."""
    square = of(lambda x: (x * 300) * (x * 300) / 90000, torch.ones(3))
    assert export(square) == 1
    said = capsys.readouterr()
    assert "greatest difference from the module: inf" in said.out
    assert "halves reach no further than 65504. --fp32 computes in float32" in said.err
    assert export(square, "--no-use_fp16") == 0
