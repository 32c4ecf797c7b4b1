# SPDX-License-Identifier: Apache-2.0
# Finds the C++ headers and libraries of the ExecuTorch 1.5 wheel, in the environment `executorch-runtime` that scripts/env makes.
# The wheel's own CMake files want CMake 3.28, so the targets are made here.
#
#   ANYMPS_EXECUTORCH_PACKAGE   the folder `executorch` of an installed or unpacked wheel, if it lies elsewhere
#
# Gives ExecuTorch_FOUND, ExecuTorch_VERSION and the imported targets ExecuTorch::headers and ExecuTorch::runtime (the runtime with its
# kernels, XNNPACK, thread pool and ETDump).

include(${CMAKE_CURRENT_LIST_DIR}/installed_package.cmake)
anymps_installed_package(ANYMPS_EXECUTORCH_PACKAGE executorch-runtime executorch)
set(_executorch_include "${ANYMPS_EXECUTORCH_PACKAGE}/include")
if(EXISTS "${_executorch_include}/executorch/runtime/backend/interface.h")
  set(ExecuTorch_INCLUDE_DIRS "${_executorch_include}" "${_executorch_include}/executorch/runtime/core/portable_type/c10")
endif()
set(_executorch_lib "${ANYMPS_EXECUTORCH_PACKAGE}/lib")
if(EXISTS "${_executorch_lib}/libexecutorch.so")
  set(ExecuTorch_LIBRARY "${_executorch_lib}/libexecutorch.so")
endif()
if(EXISTS "${ANYMPS_EXECUTORCH_PACKAGE}/version.py")
  file(STRINGS "${ANYMPS_EXECUTORCH_PACKAGE}/version.py" _executorch_line REGEX "version.*=.*[0-9]+\\.[0-9]+")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" ExecuTorch_VERSION "${_executorch_line}")
  unset(_executorch_line)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  ExecuTorch
  REQUIRED_VARS ExecuTorch_LIBRARY ExecuTorch_INCLUDE_DIRS
  VERSION_VAR ExecuTorch_VERSION
  REASON_FAILURE_MESSAGE "run scripts/env executorch-runtime, or set ANYMPS_EXECUTORCH_PACKAGE")

if(ExecuTorch_FOUND AND NOT TARGET ExecuTorch::headers)
  add_library(ExecuTorch::headers INTERFACE IMPORTED)
  set_target_properties(
    ExecuTorch::headers
    PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${ExecuTorch_INCLUDE_DIRS}"
               INTERFACE_COMPILE_DEFINITIONS "C10_USING_CUSTOM_GENERATED_MACROS;ET_EVENT_TRACER_ENABLED")
  add_library(ExecuTorch::runtime INTERFACE IMPORTED)
  # Kernels and backends register themselves: nothing refers to them, so the linker must be told to keep them.
  set(_executorch_libraries "${ExecuTorch_LIBRARY}")
  foreach(_executorch_part IN ITEMS kernels_optimized backend_xnnpack threadpool etdump)
    list(APPEND _executorch_libraries "${_executorch_lib}/libexecutorch_${_executorch_part}.so")
  endforeach()
  target_link_libraries(ExecuTorch::runtime INTERFACE ExecuTorch::headers -Wl,--no-as-needed ${_executorch_libraries}
                                                      -Wl,--as-needed)
  unset(_executorch_libraries)
  unset(_executorch_part)
endif()
unset(_executorch_include)
unset(_executorch_lib)
