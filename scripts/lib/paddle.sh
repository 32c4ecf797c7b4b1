# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The Paddle door, built as a wheel and installed into the environment of PaddlePaddle, as its users install it.

install_paddle_door() {
  export ANYMPS_VENV_DIR=$venv_dir
  if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  rm -rf build/wheels/paddle
  nice "$venv_dir/engine/bin/python" -m pip wheel --disable-pip-version-check --no-build-isolation --no-deps \
    -C build-dir="$root/build/paddle-wheel" -w build/wheels/paddle ./doors/paddle &&
    "$venv_dir/paddle/bin/python" -m pip install --disable-pip-version-check --no-index --no-deps --force-reinstall \
      build/wheels/paddle/*.whl
}
