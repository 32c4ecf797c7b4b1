# SPDX-License-Identifier: Apache-2.0
"""The tests of the PyTorch door run where it is installed: where torch finds an entry point of that name."""
import importlib.metadata
import os

# One thread a process, and torch's own bf16 kept off tiles that a hypervisor may hide. Before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

installed = bool(importlib.metadata.entry_points(group="torch.backends", name="torch_anymps"))
collect_ignore_glob = [] if installed else ["test_*.py", "opinfo/test_*.py", "shaders/test_*.py"]
