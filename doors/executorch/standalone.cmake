# SPDX-License-Identifier: Apache-2.0
# This folder as a project of its own, as ExecuTorch's MPS example is built:
#
#   cmake -DEXECUTORCH_BUILD_MPS=1 -DEXECUTORCH_BUILD_SDK=ON -DBUCK2=/tmp/buck2 ..
#
# gives examples/apple/mps/mps_executor_runner. The engine is an installed one (find_package), else the one of ../../build, else it is built
# here.
option(EXECUTORCH_BUILD_MPS "Build mps_executor_runner" ON)
option(EXECUTORCH_BUILD_SDK "ETDump and bundled programs; they are always there" ON)
option(EXECUTORCH_BUILD_DEVTOOLS "The newer name of EXECUTORCH_BUILD_SDK" ON)
set(BUCK2 "" CACHE STRING "Taken for the sake of the command line; nothing here needs Buck")
if(NOT EXECUTORCH_BUILD_MPS)
  message(STATUS "There is nothing to build: -DEXECUTORCH_BUILD_MPS=1 builds the runner")
  return()
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(ANYMPS_RUNNER_DIR ${CMAKE_BINARY_DIR}/examples/apple/mps)

get_filename_component(ANYMPS_ROOT ${CMAKE_CURRENT_SOURCE_DIR}/../.. ABSOLUTE)
list(PREPEND CMAKE_MODULE_PATH ${ANYMPS_ROOT}/cmake)
if(NOT DEFINED ANYMPS_VENV_DIR)
  if(DEFINED ENV{ANYMPS_VENV_DIR})
    set(ANYMPS_VENV_DIR "$ENV{ANYMPS_VENV_DIR}" CACHE PATH "Folder of the virtual environments that scripts/env makes")
  else()
    set(ANYMPS_VENV_DIR "${ANYMPS_ROOT}/.venvs" CACHE PATH "Folder of the virtual environments that scripts/env makes")
  endif()
endif()

find_package(anymps CONFIG QUIET)
if(anymps_FOUND)
  message(STATUS "AnyMPS: installed, ${anymps_DIR}")
elseif(EXISTS ${ANYMPS_ROOT}/build/lib/libanymps.so)
  message(STATUS "AnyMPS: ${ANYMPS_ROOT}/build (as it was built last)")
  add_library(anymps::anymps SHARED IMPORTED)
  set_target_properties(anymps::anymps PROPERTIES IMPORTED_LOCATION ${ANYMPS_ROOT}/build/lib/libanymps.so
                                                  INTERFACE_INCLUDE_DIRECTORIES ${ANYMPS_ROOT}/include)
else()
  message(STATUS "AnyMPS: built here, from ${ANYMPS_ROOT}")
  foreach(part IN ITEMS TESTS BENCH CLI PYTHON EXAMPLES EXECUTORCH)
    set(ANYMPS_BUILD_${part} OFF)
  endforeach()
  add_subdirectory(${ANYMPS_ROOT} anymps EXCLUDE_FROM_ALL)
endif()
