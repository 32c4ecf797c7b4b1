# SPDX-License-Identifier: Apache-2.0
"""What a CPU fallback costs: targets are read, each op is measured in processes of its own, and a CSV per op is written."""
