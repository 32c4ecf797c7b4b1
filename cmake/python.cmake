# SPDX-License-Identifier: Apache-2.0
# The Python package, where Python and nanobind are found: in the engine's environment, or in the one that pip builds a
# wheel in (scikit-build-core says which Python that is).
if(NOT Python_EXECUTABLE AND EXISTS ${ANYMPS_VENV_DIR}/engine/bin/python)
  set(Python_EXECUTABLE ${ANYMPS_VENV_DIR}/engine/bin/python)
endif()
find_package(Python 3.11 COMPONENTS Interpreter Development.Module)
if(Python_FOUND)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_package(nanobind CONFIG QUIET)
endif()
if(nanobind_FOUND)
  add_subdirectory(${PROJECT_SOURCE_DIR}/doors/python)
else()
  message(STATUS "The Python package is not built: no Python 3.11 with headers, or no nanobind (scripts/env engine)")
endif()
