# SPDX-License-Identifier: Apache-2.0
# ANYMPS_VENV_DIR: where the virtual environments are that scripts/env makes. Cache variable, else environment variable, else
# .venvs beside the sources.
if(NOT DEFINED ANYMPS_VENV_DIR)
  if(DEFINED ENV{ANYMPS_VENV_DIR})
    set(ANYMPS_VENV_DIR "$ENV{ANYMPS_VENV_DIR}" CACHE PATH "Folder of the virtual environments that scripts/env makes")
  else()
    get_filename_component(_venvs "${CMAKE_CURRENT_LIST_DIR}/../.venvs" ABSOLUTE)
    set(ANYMPS_VENV_DIR "${_venvs}" CACHE PATH "Folder of the virtual environments that scripts/env makes")
    unset(_venvs)
  endif()
endif()
