# SPDX-License-Identifier: Apache-2.0
# The libraries that the engine is made of, as the target anymps_libraries. What a process shares by name with other
# frameworks is a source of errors: another version of it, loaded earlier, would serve the engine, or the engine's would serve
# them. So the engine keeps its libraries to itself, as private copies. Two stay shared: the C library and the C++ run-time
# library, through which exceptions pass.
include(${CMAKE_CURRENT_LIST_DIR}/private_library.cmake)

find_package(Threads REQUIRED)
find_package(Protozero REQUIRED)
find_package(fmt REQUIRED)

# What oneDNN finds in the place of libgomp: see teams.h.
add_library(anymps_gomp SHARED ${PROJECT_SOURCE_DIR}/src/drivers/cpu/gomp/teams.c)
set_target_properties(anymps_gomp PROPERTIES SUFFIX .so.1 C_VISIBILITY_PRESET hidden LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/drivers/cpu/gomp/teams.map)
target_link_options(anymps_gomp PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/drivers/cpu/gomp/teams.map)
anymps_own_library(libgomp.so.1 anymps_gomp GOMP_barrier GOMP_loop_end_nowait GOMP_loop_static_next GOMP_loop_static_start GOMP_parallel_end
                   GOMP_parallel_start omp_get_max_threads omp_get_num_threads omp_get_thread_num omp_in_parallel __cxa_atexit)
find_package(OneDNN REQUIRED)

# anymps_private(NAME FILE-NAME [HEADER]): finds a library, makes its private copy, and adds the header's folder.
function(anymps_private name file)
  string(TOUPPER ${name} upper)
  # The folders lapack and blas are Debian's for the reference implementation: the plain name may be another one there, with
  # threads and roundings of its own.
  find_library(${upper}_LIBRARY NAMES ${file} PATHS ${compiler_libraries} PATH_SUFFIXES lapack blas REQUIRED)
  anymps_private_library(${name} ${${upper}_LIBRARY})
  if(ARGC GREATER 2)
    find_path(${upper}_INCLUDE_DIR ${ARGV2} PATH_SUFFIXES openjpeg-2.5 openjpeg-2.4 openjpeg-2.3 REQUIRED)
    target_include_directories(anymps_${name} SYSTEM INTERFACE ${${upper}_INCLUDE_DIR})
  endif()
endfunction()
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libgfortran.so OUTPUT_VARIABLE compiler_libraries OUTPUT_STRIP_TRAILING_WHITESPACE)
cmake_path(GET compiler_libraries PARENT_PATH compiler_libraries)
anymps_private(hwy hwy hwy/highway.h)
anymps_private(re2 re2 re2/re2.h)
anymps_private(quadmath quadmath)
anymps_private(gfortran gfortran)
anymps_private(blas blas)
anymps_private(lapack lapack)
anymps_private(z z)
anymps_private(png png16 png.h)
anymps_private(jpeg jpeg jpeglib.h)
anymps_private(openjpeg openjp2 openjpeg.h)
anymps_private(webp webp webp/decode.h)

add_library(anymps_images INTERFACE)
target_link_libraries(anymps_images INTERFACE anymps_png anymps_jpeg anymps_openjpeg anymps_webp)
# fmt is compiled as part of the engine (src/base/fmt.cc): only its headers are used.
add_library(anymps_fmt INTERFACE)
target_include_directories(anymps_fmt SYSTEM INTERFACE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(anymps_fmt INTERFACE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)

add_library(anymps_libraries INTERFACE)
target_link_libraries(anymps_libraries INTERFACE anymps_fmt anymps_images anymps_hwy anymps_lapack anymps_re2 OneDNN::dnnl
                      anymps_gomp Threads::Threads Protozero::protozero)
