# SPDX-License-Identifier: Apache-2.0
# For a door that is configured as a project of its own: the settings of the top build, and the target anymps::anymps. The
# engine is an installed one (find_package), else the one of ../../build, else it is built here. ANYMPS_ENGINE is its
# library, "" where it is built here.
include(${CMAKE_CURRENT_LIST_DIR}/defaults.cmake)

get_filename_component(ANYMPS_ROOT ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
list(PREPEND CMAKE_MODULE_PATH ${ANYMPS_ROOT}/cmake)
find_package(anymps CONFIG QUIET)
if(anymps_FOUND)
  message(STATUS "AnyMPS: installed, ${anymps_DIR}")
  get_target_property(ANYMPS_ENGINE anymps::anymps LOCATION)
elseif(EXISTS ${ANYMPS_ROOT}/build/lib/libanymps.so)
  message(STATUS "AnyMPS: ${ANYMPS_ROOT}/build (as it was built last)")
  set(ANYMPS_ENGINE ${ANYMPS_ROOT}/build/lib/libanymps.so)
  add_library(anymps::anymps SHARED IMPORTED)
  set_target_properties(anymps::anymps PROPERTIES IMPORTED_LOCATION ${ANYMPS_ENGINE}
                                                  INTERFACE_INCLUDE_DIRECTORIES ${ANYMPS_ROOT}/include)
else()
  message(STATUS "AnyMPS: built here, from ${ANYMPS_ROOT}")
  set(ANYMPS_ENGINE "")
  foreach(part IN ITEMS TESTS BENCH CLI PYTHON EXAMPLES EXECUTORCH SERVER TRITON)
    set(ANYMPS_BUILD_${part} OFF)
  endforeach()
  add_subdirectory(${ANYMPS_ROOT} anymps EXCLUDE_FROM_ALL)
endif()
