# SPDX-License-Identifier: Apache-2.0
# Finds the C++ headers and libraries of the PaddlePaddle 3.3 wheel: in the Python that a wheel is built for, else in the
# environment `paddle` that scripts/env makes.
#
#   ANYMPS_PADDLE_PACKAGE   the folder `paddle` of an installed or unpacked wheel, if it lies elsewhere
#
# Gives Paddle_FOUND, Paddle_VERSION (the full version string) and the imported targets Paddle::headers and Paddle::phi
# (the libraries that kernels are linked with; the process that loads the plug-in has them).

include(${CMAKE_CURRENT_LIST_DIR}/installed_package.cmake)
anymps_installed_package(ANYMPS_PADDLE_PACKAGE paddle paddle paddle/phi/backends/device_ext.h)
if(EXISTS "${ANYMPS_PADDLE_PACKAGE}/include/paddle/phi/backends/device_ext.h")
  set(Paddle_INCLUDE_DIRS "${ANYMPS_PADDLE_PACKAGE}/include" "${ANYMPS_PADDLE_PACKAGE}/include/third_party")
  file(GLOB _paddle_parts "${ANYMPS_PADDLE_PACKAGE}/include/third_party/install/*/include")
  list(APPEND Paddle_INCLUDE_DIRS ${_paddle_parts})
  unset(_paddle_parts)
endif()
if(EXISTS "${ANYMPS_PADDLE_PACKAGE}/libs/libphi_core.so")
  foreach(_paddle_part IN ITEMS phi phi_core common)
    list(APPEND Paddle_LIBRARIES "${ANYMPS_PADDLE_PACKAGE}/libs/lib${_paddle_part}.so")
  endforeach()
  unset(_paddle_part)
endif()
if(EXISTS "${ANYMPS_PADDLE_PACKAGE}/version/__init__.py")
  file(STRINGS "${ANYMPS_PADDLE_PACKAGE}/version/__init__.py" _paddle_line REGEX "^full_version")
  string(REGEX REPLACE ".*'([^']+)'.*" "\\1" Paddle_VERSION "${_paddle_line}")
  unset(_paddle_line)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Paddle
  REQUIRED_VARS Paddle_LIBRARIES Paddle_INCLUDE_DIRS
  VERSION_VAR Paddle_VERSION
  HANDLE_VERSION_RANGE
  REASON_FAILURE_MESSAGE "run scripts/env paddle, or set ANYMPS_PADDLE_PACKAGE")

if(Paddle_FOUND AND NOT TARGET Paddle::headers)
  add_library(Paddle::headers INTERFACE IMPORTED)
  # As system headers, which imported targets' are: what compilers and checkers find in them is not ours.
  set_target_properties(
    Paddle::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${Paddle_INCLUDE_DIRS}"
                               INTERFACE_COMPILE_DEFINITIONS "PADDLE_WITH_CUSTOM_DEVICE;PADDLE_WITH_CUSTOM_KERNEL")
  add_library(Paddle::phi INTERFACE IMPORTED)
  # Without what they need in turn: the process has it.
  target_link_libraries(Paddle::phi INTERFACE Paddle::headers ${Paddle_LIBRARIES} -Wl,--allow-shlib-undefined)
endif()
