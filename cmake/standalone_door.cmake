# SPDX-License-Identifier: Apache-2.0
# For a door that is configured as a project of its own: the settings of the top build, and the target anymps::anymps. The
# engine is an installed one (find_package), else the one of <repository>/build, else it is built here.
#
# anymps_install_engine(<dir> [ONE_NAME]) installs the engine's library into <dir>, with the ones beside it that it brings
# along; with ONE_NAME as libanymps.so alone, for wheels, in which every link would be a copy.
get_filename_component(ANYMPS_ROOT ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
list(PREPEND CMAKE_MODULE_PATH ${ANYMPS_ROOT}/cmake)
if(NOT DEFINED ANYMPS_UNITY)
  set(ANYMPS_UNITY ON)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/defaults.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/environments.cmake)

# CMake stops at the first thing that is not there; this names all of them, and what brings them.
find_program(DPKG_QUERY dpkg-query)
if(DPKG_QUERY)
  file(STRINGS ${ANYMPS_ROOT}/requirements/debian.txt packages REGEX "^[^#]")
  execute_process(COMMAND ${DPKG_QUERY} -W -f "\${db:Status-Status} \${Package};" OUTPUT_VARIABLE installed ERROR_QUIET)
  list(TRANSFORM packages PREPEND "installed ")
  list(REMOVE_ITEM packages ${installed})
  list(TRANSFORM packages REPLACE "^installed " "")
  if(packages)
    list(JOIN packages " " packages)
    message(WARNING "These Debian packages are missing: ${packages}\nInstall them with: ${ANYMPS_ROOT}/scripts/env engine")
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
  foreach(part IN ITEMS TESTS BENCH CLI PYTHON EXAMPLES EXECUTORCH SERVER TRITON PADDLE TORCH)
    set(ANYMPS_BUILD_${part} OFF)
  endforeach()
  add_subdirectory(${ANYMPS_ROOT} anymps EXCLUDE_FROM_ALL)
  # A door loads the engine by hand and is linked with nothing of it, but a wheel holds it.
  add_custom_target(anymps_shipped ALL DEPENDS anymps)
endif()

# What the engine loads from the system's folders is the system's, except for its own. A library out of a build folder
# knows its neighbours by their places there: in <dir> they lie beside it.
function(anymps_install_engine destination)
  install(CODE "set(engine [[$<TARGET_FILE:anymps::anymps>]])\nset(destination [[${destination}]])\nset(one_name [[${ARGN}]])")
  install(CODE [[
    file(GET_RUNTIME_DEPENDENCIES LIBRARIES "${engine}" RESOLVED_DEPENDENCIES_VAR libraries
         POST_INCLUDE_REGEXES "/libanymps[^/]*$" "/libdnnl[^/]*$" POST_EXCLUDE_REGEXES "^/lib" "^/usr/lib")
    file(REAL_PATH "${engine}" engine)
    cmake_path(GET engine PARENT_PATH folder)
    cmake_path(GET engine FILENAME name)
    if(one_name)
      file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${destination}" TYPE PROGRAM FILES "${engine}" RENAME libanymps.so)
      set(name libanymps.so)
      set(names "")
    else()
      file(GLOB names "${folder}/libanymps.so*")  # and the links to it: programs ask for one of them
    endif()
    file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${destination}" TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN
         FILES ${names} ${libraries})
    set(installed "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${destination}/${name}")
    file(READ_ELF "${installed}" RPATH rpath RUNPATH runpath)
    if(rpath OR runpath)
      file(RPATH_SET FILE "${installed}" NEW_RPATH "$ORIGIN")
    endif()
  ]])
endfunction()
