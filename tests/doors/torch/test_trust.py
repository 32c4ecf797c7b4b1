# SPDX-License-Identifier: Apache-2.0
"""What a run here tells of the Mac: strict mode, the report of fallbacks, ops switched off."""
import json
import re
import textwrap

import pytest
import torch

from tests.doors.torch.alone import run_alone


def test_float64_is_there_and_strict_mode_refuses_it():
    import torch_anymps

    assert torch.ones(2, dtype=torch.float64, device="mps").sum().item() == 2
    with torch_anymps.strict():
        with pytest.raises(TypeError, match="float64"):
            torch.ones(2, dtype=torch.float64, device="mps")
    assert torch.ones(2, dtype=torch.float64, device="mps").sum().item() == 2


def test_strict_mode_refuses_what_has_no_kernel_on_a_mac():
    program = """
        import torch
        assert torch.ones(3, device="mps").add(1).tolist() == [2.0] * 3
        try:
            torch.linalg.eig(torch.eye(3, device="mps"))
        except NotImplementedError as error:
            assert "linalg_eig" in str(error), error
        else:
            raise SystemExit("linalg_eig was not refused")
    """
    run_alone(program, ANYMPS_STRICT_MPS="1")
    with pytest.raises(AssertionError, match="was not refused"):
        run_alone(program, ANYMPS_STRICT_MPS="0")


def test_strict_mode_has_convolutions():
    """They have other names on a Mac than on a device that PyTorch does not know."""
    run_alone("""
        import torch
        x = torch.ones(1, 1, 3, 3, device="mps", requires_grad=True)
        torch.nn.functional.conv2d(x, torch.ones(1, 1, 2, 2, device="mps")).sum().backward()
        assert x.grad.cpu().sum().item() == 16
    """, ANYMPS_STRICT_MPS="1")


FALLS = """
    import torch, torch_anymps
    x = torch.arange(6.0, device="mps")
    for _ in range(3): y = torch.erf(x)
    assert torch.allclose(y.cpu(), torch.erf(x.cpu()))
    (entry,) = torch_anymps.fallbacks()
    assert (entry["op"], entry["count"]) == ("aten::erf.out", 3) and entry["bytes"] > 0 and entry["milliseconds"] > 0, entry
    assert entry["call_site"].endswith(":4"), entry
"""
SWITCHED_OFF = {"ANYMPS_DISABLE_OPS": "erf", "PYTORCH_ENABLE_MPS_FALLBACK": "1"}


def test_strict_mode_of_a_part_of_a_program():
    import torch_anymps

    x, y = torch.eye(3, device="mps"), torch.rand(4, device="mps")
    assert torch.linalg.eigvals(x).real.tolist() == [1.0] * 3
    torch.special.airy_ai(y)  # now it is known how it is computed
    with torch_anymps.strict():
        assert (x + 1).sum().item() == 12  # what a Mac has
        torch.trace(x), torch.ldexp(y, y)  # what PyTorch makes of that
        for missing in (lambda: torch.linalg.eigvals(x), lambda: torch.special.airy_ai(y), lambda: torch.mode(x)):
            with pytest.raises(NotImplementedError, match="no kernel on a Mac"):
                missing()
    torch.special.airy_ai(y)


def test_strict_mode_of_a_version():
    program = """
        import torch
        x = torch.rand(3, device="mps")
        for op in (lambda: torch.frexp(x), lambda: torch.special.airy_ai(x), lambda: x.sin()):
            try:
                op()
                print("there", end=" ")
            except NotImplementedError:
                print("missing", end=" ")
    """
    assert run_alone(program, ANYMPS_STRICT_MPS="2.13") == "missing missing there"
    assert run_alone(program, ANYMPS_STRICT_MPS="2.15") == "there missing there"
    # Nobody knows what is asked for: no device, rather than one that promises too much.
    said = """
        import subprocess, sys
        print(subprocess.run([sys.executable, "-c", "import torch; print(torch.backends.mps.is_available())"], stderr=subprocess.STDOUT,
                             stdout=subprocess.PIPE, text=True).stdout)
    """
    lines = run_alone(said, ANYMPS_STRICT_MPS="2.9").splitlines()
    assert lines[-1] == "False" and "ANYMPS_STRICT_MPS=2.9" in lines[0] and "2.15" in lines[0]


CHECKED = """
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)).to("mps")
    step = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(2, 3, 8, 8).to("mps"), torch.tensor([1, 3], device="mps")
    for _ in range(2):
        step.zero_grad()
        torch.nn.functional.cross_entropy(model(x.to(memory_format=torch.channels_last)), y).backward()
        step.step()
    print("trained")
"""


def test_a_training_run_is_compared_with_the_reference():
    """Clean as it is; with a tolerance that no f32 kernel can meet the first op that differs is named, ATen's and the engine's."""
    assert run_alone(CHECKED, ANYMPS_CHECK="reference") == "trained"
    with pytest.raises(AssertionError, match=r"RuntimeError: \[convolution_overrideable\] \[conv\] kernel cpu:\w+ differs from reference: output"):
        run_alone(CHECKED, ANYMPS_CHECK="reference", ANYMPS_CHECK_RTOL="1e-12")


def test_a_gradient_that_cancels_is_no_mistake():
    """Of the sum of what is normalized, or of shares: zero in every element, but for rounding."""
    assert run_alone("""
        import torch
        torch.manual_seed(0)
        x = torch.randn(16, 96).to("mps").requires_grad_()
        torch.nn.functional.layer_norm(x, (96,)).sum().backward()
        torch.nn.functional.group_norm(x.view(4, 8, 48), 4).sum().backward()
        torch.nn.functional.batch_norm(x, None, None, training=True).sum().backward()
        x.softmax(-1).sum().backward()
        q = x.view(1, 2, 16, 48)
        torch.nn.functional.scaled_dot_product_attention(q, q, torch.ones_like(q)).sum().backward()
        print("trained")
    """, ANYMPS_CHECK="reference") == "trained"


def test_a_mean_of_what_is_normalized_is_no_mistake():
    """Layer norm upon layer norm, as at the end of a transformer: the mean that is kept for the gradient is rounding alone."""
    assert run_alone("""
        import torch
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True)
        model = torch.nn.TransformerEncoder(layer, 2, norm=torch.nn.LayerNorm(16)).to("mps")
        step = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            step.zero_grad()
            x = torch.randn(2, 6, 16).to("mps")
            (model(x) - x.flip(1)).square().mean().backward()
            step.step()
        print("trained")
    """, ANYMPS_CHECK="reference") == "trained"


def test_fallbacks_are_reported_as_text():
    program = "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', '''" + textwrap.dedent(FALLS) + "'''], capture_output=True, text=True).stderr)"
    said = run_alone(program, **SWITCHED_OFF, ANYMPS_FALLBACK_REPORT="1")
    assert re.search(r"aten::erf.out: 3 times, \d+ bytes, [\d.]+ ms, first at <string>:4", said), said
    said = run_alone(program, **SWITCHED_OFF, PYTORCH_MPS_LOG_PROFILE_INFO="0x8")
    assert re.search(r"copies to host: \d+, [\d,]+ bytes", said) and "aten::erf.out: 3 times" in said


def test_fallbacks_are_reported(tmp_path):
    report = tmp_path / "report.json"
    run_alone(FALLS, **SWITCHED_OFF, ANYMPS_FALLBACK_REPORT=str(report))
    (entry,) = json.loads(report.read_text())
    assert entry["op"] == "aten::erf.out" and entry["count"] == 3
    assert entry["call_site"], "the line that called it"


def test_a_missing_op_is_refused_without_fallback():
    with pytest.raises(AssertionError, match="erf.out.*PYTORCH_ENABLE_MPS_FALLBACK=1"):
        run_alone(FALLS, ANYMPS_DISABLE_OPS="erf")


def test_nothing_fell_back():
    import torch_anymps

    before = torch_anymps.transfers()["to_host"][0]
    assert torch.ones(2, device="mps").mul(2).cpu().tolist() == [2.0, 2.0]
    assert torch_anymps.transfers()["to_host"][0] == before + 1
    assert torch_anymps.fallbacks() == []
