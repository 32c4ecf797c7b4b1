# SPDX-License-Identifier: Apache-2.0
"""Every op that upstream's MPS has, and those that only CPU and CUDA have, is there; the page says so; strict mode knows them."""
import re

import pytest

from tests.doors.torch import coverage
from tests.doors.torch.alone import run_alone
from tests.doors.torch.opinfo import ROOT

FUNCTIONS = coverage.upstream()
PAGE = ROOT / "docs" / "generated" / "torch_ops.md"
# What is refused; of upstream's nothing. Tensors in layouts that PyTorch keeps to other devices (quantized, compressed, nested),
# numbers from explicit keys.
OF_OTHERS = set("""_make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor dequantize quantize_per_channel quantize_per_tensor
    quantize_per_tensor_dynamic _to_sparse_bsc _to_sparse_bsr _to_sparse_csc _to_sparse_csr _validate_compressed_sparse_indices sspaddmm
    _nested_compute_contiguous_strides_offsets _nested_from_padded _nested_tensor_from_mask _nested_view_from_buffer
    _philox_key_fold_in _philox_key_split _philox_normal_ _philox_randint_ _philox_uniform_""".split())


def test_the_lists_are_what_they_were():
    assert len(coverage.on_a_mac(FUNCTIONS)) == 448 and len(coverage.missing_on_a_mac(FUNCTIONS)) == 90


@pytest.mark.parametrize("names, absent", [(coverage.on_a_mac, set()), (coverage.missing_on_a_mac, OF_OTHERS)])
def test_every_function_has_a_kernel(names, absent):
    assert set(coverage.counts(names(FUNCTIONS), FUNCTIONS, coverage.by_kernel())[-1]) == absent


def test_every_overload_of_a_mac_is_there():
    """By a kernel here, or made of others by PyTorch itself."""
    kernels = coverage.by_kernel()
    missing = [op for op, keys in FUNCTIONS.items() if "MPS" in keys and op not in kernels and not coverage.is_composed(op)]
    assert not missing


def test_strict_mode_has_upstreams_list():
    text = (ROOT / "doors" / "torch" / "csrc" / "mac_kernels.inc").read_text()
    assert set(re.findall(r'"(\w+)"', text)) == coverage.on_a_mac(FUNCTIONS)


def test_strict_mode_has_no_kernel_that_a_mac_has_not():
    """What is left then: kernels of a Mac, and parts of what PyTorch composes there in another way."""
    left = run_alone("""
        from tests.doors.torch import coverage
        functions, kernels = coverage.upstream(), coverage.by_kernel()
        print(*sorted({coverage.base(op) for op in kernels} & coverage.missing_on_a_mac(functions)))
    """, path=[ROOT], ANYMPS_STRICT_MPS="1")
    assert left.split() == ["_fused_sdp_choice", "logit_"]  # a question about the device; the in-place form of one that is there


def test_the_page_is_current():
    assert PAGE.read_text() == coverage.page(), f"print it anew: python -m tests.doors.torch.coverage > {PAGE.relative_to(ROOT)}"
