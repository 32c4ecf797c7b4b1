# SPDX-License-Identifier: Apache-2.0
# This folder as a project of its own, as ExecuTorch's MPS example is built:
#
#   cmake -DEXECUTORCH_BUILD_MPS=1 -DEXECUTORCH_BUILD_SDK=ON -DBUCK2=/tmp/buck2 ..
#
# gives examples/apple/mps/mps_executor_runner.
option(EXECUTORCH_BUILD_MPS "Build mps_executor_runner" ON)
option(EXECUTORCH_BUILD_SDK "ETDump and bundled programs; they are always there" ON)
option(EXECUTORCH_BUILD_DEVTOOLS "The newer name of EXECUTORCH_BUILD_SDK" ON)
set(BUCK2 "" CACHE STRING "Taken for the sake of the command line; nothing here needs Buck")
if(NOT EXECUTORCH_BUILD_MPS)
  message(STATUS "There is nothing to build: -DEXECUTORCH_BUILD_MPS=1 builds the runner")
  return()
endif()

set(ANYMPS_RUNNER_DIR ${CMAKE_BINARY_DIR}/examples/apple/mps)

get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
include(${root}/cmake/standalone_door.cmake)
