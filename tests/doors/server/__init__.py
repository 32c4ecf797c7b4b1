# SPDX-License-Identifier: Apache-2.0
"""Tests of serving: our server and our backend in a real tritonserver, from one table of cases."""
