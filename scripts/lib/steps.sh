# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Progress, logs and failures for the scripts: each step prints its number, what it does and how long it took;
# its full output goes to build/logs/, and a failing step shows the end of it and says what to do.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
log_dir="$root/build/logs"
mkdir -p "$log_dir"

step_number=0
step_total=0
step_pid=

die() {
  printf '\n%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Seconds since $1 (a value of EPOCHREALTIME) with one decimal.
seconds_since() {
  local us=$((${EPOCHREALTIME/[.,]/} - ${1/[.,]/}))
  printf '%d.%d' $((us / 1000000)) $((us % 1000000 / 100000))
}

stop_step() {
  trap - INT TERM
  [ -z "$step_pid" ] || kill -TERM -- "-$step_pid" 2>/dev/null || true
  printf '\ninterrupted\n' >&2
  exit 130
}

# The running step's last line of output, kept on one line of the terminal.
show_progress() {
  local title=$1 log=$2 start=$3 width line
  width=$(($(tput cols 2>/dev/null || echo 80) - 1))
  while kill -0 "$step_pid" 2>/dev/null; do
    line=$(tail -c 400 "$log" 2>/dev/null | tr '\r' '\n' | grep -av '^[[:space:]]*$' | tail -n 1 | tr -cd '[:print:]') || true
    printf '\r\033[K%s' "$(printf '%s  %s s  %s' "$title" "$(seconds_since "$start")" "$line" | cut -c "1-$width")"
    sleep 0.5
  done
  printf '\r\033[K'
}

# try_step TITLE LOG COMMAND...: runs a command (or function) as one step; returns its status.
try_step() {
  local title log start status=0
  step_number=$((step_number + 1))
  title="[$step_number/$step_total] $1"
  log="$log_dir/$2.log"
  shift 2
  start=$EPOCHREALTIME
  trap stop_step INT TERM
  set -m # a process group of its own, so that an interrupt ends all of it
  ("$@") >"$log" 2>&1 </dev/null &
  step_pid=$!
  set +m
  if [ -t 1 ]; then show_progress "$title" "$log" "$start"; else printf '%s ...\n' "$title"; fi
  wait "$step_pid" || status=$?
  step_pid=
  trap - INT TERM
  if [ "$status" = 0 ]; then
    printf '%s: done in %s s\n' "$title" "$(seconds_since "$start")"
  else
    printf '%s: FAILED after %s s\n' "$title" "$(seconds_since "$start")"
  fi
  return "$status"
}

# done_step TITLE: a step with nothing to do.
done_step() {
  step_number=$((step_number + 1))
  printf '[%d/%d] %s\n' "$step_number" "$step_total" "$1"
}

# step TITLE LOG HINT COMMAND...: as try_step, but a failure ends the script with the log's end and the hint.
step() {
  local title=$1 log=$2 hint=$3
  shift 3
  if ! try_step "$title" "$log" "$@"; then
    show_failure "$log"
    die "'$title' failed. $hint"
  fi
}

# The lines of a log that say why (errors first, each once; otherwise the end), and where the rest is.
show_failure() {
  local log="$log_dir/$1.log" errors
  errors=$(grep -aE '(error|FAILED|ERROR):|^E: |undefined reference' "$log" | awk '!seen[$0]++' | cut -c 1-240 || true)
  if [ -n "$errors" ]; then
    head -n 15 <<<"$errors" | sed 's/^/    /'
    [ "$(wc -l <<<"$errors")" -le 15 ] || printf '    ... and %d more\n' "$(($(wc -l <<<"$errors") - 15))"
  else
    tail -n 30 "$log" | cut -c 1-240 | sed 's/^/    /'
  fi
  printf '    full log: %s\n' "${log#"$root"/}"
}
