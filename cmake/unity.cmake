# SPDX-License-Identifier: Apache-2.0
# anymps_unity(TARGET): with ANYMPS_UNITY, compiles the target's sources in groups of up to twelve files of one folder. Most
# of a file's compile time goes into templates of headers that its neighbours use as well. Files of different folders never
# meet, so a name in an anonymous namespace must be unique in its folder alone.
function(anymps_unity target)
  if(NOT ANYMPS_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # it takes every file but the first for a header
  endif()
  get_target_property(sources ${target} SOURCES)
  set(last "")
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    if(NOT folder STREQUAL last)
      set(last ${folder})
      set(count 0)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE name)
      string(MAKE_C_IDENTIFIER "${target}_${name}" name)
    endif()
    math(EXPR group "${count} / 12")
    math(EXPR count "${count} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${group})
  endforeach()
endfunction()
