#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_exports.sh LIBRARY PATTERN: fails if a shared library defines a dynamic symbol that the pattern does not match, of
# whatever kind: instances of templates are weak or unique, and the loader makes unique ones one in the whole process. Fails
# too if it holds a function part without code: the unwinder finds the entry of such a part instead of that of its neighbour,
# and an error there ends the process.
set -euo pipefail
exported=$(nm -D --defined-only "$1" | awk '$2 != "A" {sub("@.*", "", $3); print $3}')
others=$(grep -vxE "$2" <<<"$exported" | c++filt | head -20 || true)
if [ -n "$others" ]; then
  printf 'symbols that should be hidden:\n%s\n' "$others"
  exit 1
fi
empty=$(nm -S --defined-only "$1" 2>/dev/null | awk 'NF == 3 && $3 ~ /\.cold$/ {print $3}' | c++filt | head -20)
if [ -n "$empty" ]; then
  printf 'cold parts without code:\n%s\n' "$empty"
  exit 1
fi
[ -n "$exported" ] || { echo "no symbol is exported" && exit 1; }
echo "$(wc -l <<<"$exported") symbols exported, all $2"
