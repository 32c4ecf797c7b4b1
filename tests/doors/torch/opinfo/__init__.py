# SPDX-License-Identifier: Apache-2.0
"""Torch's own op database (op_db) on the device 'mps', compared with the CPU. See __main__.py."""
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[4]
PAGE = ROOT / "docs" / "generated" / "torch_conformance.md"

DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64", "c64": "complex64",
          "i64": "int64", "i32": "int32", "u8": "uint8", "bool": "bool"}
WITH_GRADIENT = ("f32", "f16", "bf16", "f64", "c64")
VARIANTS = ("noncontiguous", "out", "inplace")  # further ways to call an op, in f32
KINDS = ("forward", "gradient", *VARIANTS)

# What a case comes to. `xfail` stands for a failure where upstream's own tests expect one.
OUTCOMES = ("pass", "wrong", "refused", "error", "crash", "timeout", "xfail", "skipped")
FAILURES = ("wrong", "refused", "error", "crash", "timeout")


def environment(fallback):
    """What has to be set before torch is imported: one thread each, and what to do with ops that are missing."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "ANYMPS_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1" if fallback else "0"
    os.environ["PYTORCH_TEST_WITH_SLOW"] = "0"
    # Where CPUID names AMX and the hypervisor hides its tiles, torch's own bf16 products end with SIGILL.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
