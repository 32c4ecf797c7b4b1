# SPDX-License-Identifier: Apache-2.0
# anymps_installed_package(VARIABLE ENVIRONMENT PACKAGE [HEADER]): sets VARIABLE, unless it is set, to the folder of a Python
# package whose C++ parts are used: the one of the Python that a wheel is built for, if HEADER is there, else the one in the
# environment that scripts/env makes.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/environments.cmake)

function(anymps_installed_package variable environment package)
  if(${variable})
    return()
  endif()
  if(ARGC GREATER 3 AND Python_EXECUTABLE)
    # pip builds in an environment of its own, in which sysconfig still names the folders of the one that it installs to.
    execute_process(COMMAND ${Python_EXECUTABLE} -c "import sysconfig; print(sysconfig.get_path('platlib'))"
                    OUTPUT_VARIABLE site OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(EXISTS "${site}/${package}/include/${ARGV3}")
      set(${variable} "${site}/${package}" PARENT_SCOPE)
      return()
    endif()
  endif()
  # An environment that is made later is found by the next build.
  file(GLOB found CONFIGURE_DEPENDS "${ANYMPS_VENV_DIR}/${environment}/lib/python3*/site-packages/${package}")
  if(found)
    list(GET found 0 first)
    set(${variable} "${first}" PARENT_SCOPE)
  endif()
endfunction()
