# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Debian packages and virtual environments: installed only where missing, pinned by the files in requirements/.
# ANYMPS_VENV_DIR (default .venvs) says where the environments go, ANYMPS_PYTHON which Python makes them.

venv_dir=${ANYMPS_VENV_DIR:-$root/.venvs}

package_names() { sed 's/#.*//; /^[[:space:]]*$/d' "$@"; }

# Prints the packages listed in the given files that are not installed.
missing_packages() {
  command -v dpkg-query >/dev/null || return 0
  comm -13 <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort -u) \
    <(package_names "$@" | sort -u)
}

apt_install() {
  local sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo -n)
  export DEBIAN_FRONTEND=noninteractive
  "${sudo[@]}" apt-get install -y --no-install-recommends "$@" && return
  echo "The package lists may be old: updating them and trying once more."
  "${sudo[@]}" apt-get update && "${sudo[@]}" apt-get install -y --no-install-recommends "$@"
}

# ensure_packages FILE...: one step, quick when nothing is missing.
ensure_packages() {
  local missing files=("${@/#/$root/requirements/}")
  if ! command -v dpkg-query >/dev/null; then
    echo "This is not a Debian system; needed here are the equivalents of: $(package_names "${files[@]}" | tr '\n' ' ')"
  fi
  mapfile -t missing < <(missing_packages "${files[@]}")
  if [ "${#missing[@]}" -gt 0 ] && [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      die "Debian packages are missing and there is no sudo here. As root run: apt-get install ${missing[*]}"
    sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; } ||
      die "Debian packages are missing and sudo needs a password. Run: sudo apt-get install ${missing[*]}"
  fi
  if [ "${#missing[@]}" -gt 0 ]; then
    step "Debian packages: ${missing[*]}" apt \
      "Check the network and run: apt-get update && apt-get install ${missing[*]}" apt_install "${missing[@]}"
  else
    done_step "Debian packages: all there"
  fi
}

# Prints a Python (3.11 or newer) that can make virtual environments.
find_python() {
  local python
  for python in ${ANYMPS_PYTHON:+"$ANYMPS_PYTHON"} python3.11 python3 /usr/bin/python3; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      command -v "$python"
      return
    fi
  done
  return 1
}

# Lines of a requirements file that are for this script: `# pip: --no-deps` installs what is listed and nothing else,
# `# borrows: NAME` lets the environment find the packages of another one behind its own.
make_venv() {
  local python=$1 venv=$2 requirements=$3 stamp=$4 options borrowed
  mapfile -t options < <(sed -n 's/^# pip: //p' "$requirements")
  borrowed=$(sed -n 's/^# borrows: //p' "$requirements")
  "$python" -m venv --clear "$venv" &&
    "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off "${options[@]}" -r "$requirements" ||
    return
  if [ -n "$borrowed" ]; then
    "$venv/bin/python" -c 'import sys, sysconfig; print(sysconfig.get_path("purelib", vars={"base": sys.argv[1]}))' \
      "$venv_dir/$borrowed" >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/borrowed.pth"
  fi
  { [ "${#options[@]}" -gt 0 ] || "$venv/bin/python" -m pip check; } && echo "$stamp" >"$venv/.stamp"
}

# ensure_venv NAME: makes .venvs/NAME from requirements/NAME.txt unless its stamp says it is that already.
ensure_venv() {
  local name=$1 requirements="$root/requirements/$1.txt" venv="$venv_dir/$1" stamp python lock
  [ -f "$requirements" ] || die "there is no environment '$name': requirements/$name.txt does not exist"
  stamp=$(sha256sum <"$requirements")
  mkdir -p "$venv_dir"
  exec {lock}>"$venv_dir/.lock"
  flock "$lock"
  if [ -x "$venv/bin/python" ] && [ "$(cat "$venv/.stamp" 2>/dev/null)" = "$stamp" ]; then
    done_step "Python environment '$name': up to date"
  else
    python=$(find_python) ||
      die "no Python 3.11 or newer that can make virtual environments: install python3-venv, or set ANYMPS_PYTHON"
    step "Python environment '$name'" "venv-$name" \
      "Check the network and pip's settings (pip config list), then run scripts/env $name again." \
      make_venv "$python" "$venv" "$requirements" "$stamp"
  fi
  exec {lock}>&-
}
