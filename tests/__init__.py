# SPDX-License-Identifier: Apache-2.0
"""Tests; a package so that `python -m tests.conformance.onnx_backend` finds its parts."""
