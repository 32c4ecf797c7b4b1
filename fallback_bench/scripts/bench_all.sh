#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures all ops of ops/targets.yaml, on the CPU and on MPS with fallback, into results/*.csv. Options: --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec "${PYTHON:-python}" -m mps_fallback_bench.run_all "$@"
