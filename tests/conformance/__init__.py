# SPDX-License-Identifier: Apache-2.0
"""Runs of test suites that others wrote."""
