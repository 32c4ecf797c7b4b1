# SPDX-License-Identifier: Apache-2.0
"""The test bundles that make_bundles.py writes: what is in each, and nothing about where it goes."""
