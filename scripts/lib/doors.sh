# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A door that is a plug-in of a framework, built as a wheel and installed into that framework's environment, as its users
# install it.

install_door() { # NAME: of the folder in doors/ and of the environment
  local name=$1
  export ANYMPS_VENV_DIR=$venv_dir
  if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  rm -rf "build/wheels/$name"
  nice "$venv_dir/engine/bin/python" -m pip wheel --disable-pip-version-check --no-build-isolation --no-deps \
    -C build-dir="$root/build/$name-wheel" -w "build/wheels/$name" "./doors/$name" &&
    "$venv_dir/$name/bin/python" -m pip install --disable-pip-version-check --no-index --no-deps --force-reinstall \
      "build/wheels/$name"/*.whl
}
