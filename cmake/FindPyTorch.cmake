# SPDX-License-Identifier: Apache-2.0
# Finds the C++ headers and libraries of the PyTorch wheel: in the Python that a wheel is built for, else in the environment
# `torch` that scripts/env makes. Not PyTorch's own TorchConfig.cmake, which asks for a CUDA toolkit.
#
#   ANYMPS_TORCH_PACKAGE   the folder `torch` of an installed or unpacked wheel, if it lies elsewhere
#
# Gives PyTorch_FOUND, PyTorch_VERSION and the imported targets PyTorch::cpu and PyTorch::python, which adds what knows Python
# (the process that loads the door has what these libraries need in turn).

include(${CMAKE_CURRENT_LIST_DIR}/installed_package.cmake)
anymps_installed_package(ANYMPS_TORCH_PACKAGE torch torch torch/library.h)
if(EXISTS "${ANYMPS_TORCH_PACKAGE}/include/torch/library.h")
  set(PyTorch_INCLUDE_DIRS "${ANYMPS_TORCH_PACKAGE}/include")
endif()
if(EXISTS "${ANYMPS_TORCH_PACKAGE}/lib/libtorch_cpu.so")
  foreach(_torch_part IN ITEMS torch_cpu c10)
    list(APPEND PyTorch_LIBRARIES "${ANYMPS_TORCH_PACKAGE}/lib/lib${_torch_part}.so")
  endforeach()
  unset(_torch_part)
endif()
if(EXISTS "${ANYMPS_TORCH_PACKAGE}/version.py")
  file(STRINGS "${ANYMPS_TORCH_PACKAGE}/version.py" _torch_line REGEX "^__version__")
  string(REGEX REPLACE ".*'([^'+]+).*" "\\1" PyTorch_VERSION "${_torch_line}")
  unset(_torch_line)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  PyTorch
  REQUIRED_VARS PyTorch_LIBRARIES PyTorch_INCLUDE_DIRS
  VERSION_VAR PyTorch_VERSION
  HANDLE_VERSION_RANGE
  REASON_FAILURE_MESSAGE "run scripts/env torch, or set ANYMPS_TORCH_PACKAGE")

if(PyTorch_FOUND AND NOT TARGET PyTorch::cpu)
  add_library(PyTorch::cpu INTERFACE IMPORTED)
  # As system headers, which imported targets' are: what compilers and checkers find in them is not ours.
  set_target_properties(PyTorch::cpu PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${PyTorch_INCLUDE_DIRS}")
  target_link_libraries(PyTorch::cpu INTERFACE ${PyTorch_LIBRARIES} -Wl,--allow-shlib-undefined)
  add_library(PyTorch::python INTERFACE IMPORTED)
  target_link_libraries(PyTorch::python INTERFACE PyTorch::cpu "${ANYMPS_TORCH_PACKAGE}/lib/libtorch_python.so")
endif()
