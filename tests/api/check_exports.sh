#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails if a shared library exports a symbol that is not amps_*, or holds a function part without code: the unwinder finds
# the entry of such a part instead of that of its neighbour, and an error there ends the process.
set -euo pipefail
others=$(nm -D --defined-only "$1" | awk '$2 ~ /[TDBRV]/ && $3 !~ /^amps_/ {print $3}' | c++filt | head -20)
if [ -n "$others" ]; then
  printf 'symbols that should be hidden:\n%s\n' "$others"
  exit 1
fi
empty=$(nm -S --defined-only "$1" 2>/dev/null | awk 'NF == 3 && $3 ~ /\.cold$/ {print $3}' | c++filt | head -20)
if [ -n "$empty" ]; then
  printf 'cold parts without code:\n%s\n' "$empty"
  exit 1
fi
echo "$(nm -D --defined-only "$1" | grep -c ' T amps_') functions exported, all amps_*"
