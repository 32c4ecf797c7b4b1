# SPDX-License-Identifier: Apache-2.0
# Finds oneDNN 3.x: first in the engine's virtual environment (scripts/env makes it), then on the system.
# Gives OneDNN_FOUND, OneDNN_VERSION, OneDNN_CPU_RUNTIME (OMP, TBB, ...) and the target OneDNN::dnnl, which links a private
# copy (private_library.cmake).

include(${CMAKE_CURRENT_LIST_DIR}/environments.cmake)

# A result cached from an environment that has since moved is of no use.
foreach(_onednn_cached IN ITEMS OneDNN_INCLUDE_DIR OneDNN_LIBRARY)
  if(${_onednn_cached} AND NOT EXISTS "${${_onednn_cached}}")
    unset(${_onednn_cached} CACHE)
  endif()
endforeach()
unset(_onednn_cached)

set(_onednn_engine "${ANYMPS_VENV_DIR}/engine")
if(SKBUILD AND NOT EXISTS "${_onednn_engine}/include/oneapi/dnnl/dnnl.hpp")
  # pip builds a wheel in an environment of its own, which has what pyproject.toml asks for.
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import importlib.metadata as m; d = m.distribution('onednn-devel-cpu-gomp'); print(next(d.locate_file(f).resolve().parents[3] for f in d.files if f.name == 'dnnl.hpp' and f.parent.name == 'dnnl'))"
    OUTPUT_VARIABLE _onednn_pip OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(_onednn_pip)
    set(_onednn_engine "${_onednn_pip}")
  endif()
  unset(_onednn_pip)
endif()
find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp PATHS "${_onednn_engine}/include" NO_DEFAULT_PATH)
find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
# The name with the major version is the one that programs load at run time.
find_library(OneDNN_LIBRARY NAMES libdnnl.so.3 dnnl PATHS "${_onednn_engine}/lib" NO_DEFAULT_PATH)
find_library(OneDNN_LIBRARY NAMES libdnnl.so.3 dnnl)
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)

set(_onednn_header "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h")
if(OneDNN_INCLUDE_DIR AND EXISTS "${_onednn_header}")
  file(STRINGS "${_onednn_header}" _onednn_lines REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH)")
  if(_onednn_lines MATCHES "MAJOR +([0-9]+).*MINOR +([0-9]+).*PATCH +([0-9]+)")
    set(OneDNN_VERSION "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
  endif()
  file(STRINGS "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_config.h" _onednn_lines
       REGEX "#define DNNL_CPU_RUNTIME DNNL_RUNTIME_")
  string(REGEX REPLACE ".*DNNL_RUNTIME_" "" OneDNN_CPU_RUNTIME "${_onednn_lines}")
endif()
unset(_onednn_lines)
unset(_onednn_header)

if(NOT OneDNN_FIND_VERSION)
  set(OneDNN_FIND_VERSION 3.0)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  OneDNN
  REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR
  VERSION_VAR OneDNN_VERSION
  REASON_FAILURE_MESSAGE "looked in ${_onednn_engine} and on the system: run scripts/env engine, or set ANYMPS_VENV_DIR")
unset(_onednn_engine)

if(OneDNN_FOUND AND NOT TARGET OneDNN::dnnl)
  include(${CMAKE_CURRENT_LIST_DIR}/private_library.cmake)
  anymps_private_library(dnnl "${OneDNN_LIBRARY}")
  target_include_directories(anymps_dnnl SYSTEM INTERFACE "${OneDNN_INCLUDE_DIR}")
  add_library(OneDNN::dnnl ALIAS anymps_dnnl)
endif()
