# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Configures and builds one preset of CMakePresets.json. ANYMPS_JOBS limits the parallel compilers.

# What one build folder compiled serves the others, the wheel's for one: paths in the cache are relative to the build folder.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}

# As many compilers as cores, but no more than one for each 1.5 GB of memory.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo "${ANYMPS_JOBS:-$((cores < memory ? cores : memory))}"
}

build_dir() { if [ "$1" = release ]; then echo "$root/build"; else echo "$root/build-$1"; fi; }

configure() {
  local options=()
  if command -v ccache >/dev/null; then
    options=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  cd "$root" && cmake --preset "$1" -DANYMPS_VENV_DIR="$venv_dir" "${options[@]}"
}

# ensure_build PRESET [TARGET...]: two steps, quick when nothing changed.
ensure_build() {
  local preset=$1 dir
  dir=$(build_dir "$1")
  shift
  step "Configuring ($preset)" "configure-$preset" \
    "A missing dependency: run scripts/env; an old cache: remove ${dir#"$root"/}/CMakeCache.txt." configure "$preset"
  step "Building ($preset): ${*:-all targets}" "build-$preset" \
    "Build it by hand with: cmake --build ${dir#"$root"/}" \
    nice cmake --build "$dir" --parallel "$(build_jobs)" --target "${@:-all}"
}
