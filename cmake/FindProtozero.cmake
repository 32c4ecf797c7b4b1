# SPDX-License-Identifier: Apache-2.0
# Finds protozero, the header-only protobuf reader of the ONNX importer: Debian's package has no CMake files of its own.
# Gives Protozero_FOUND, Protozero_VERSION and the imported target Protozero::protozero.

find_path(Protozero_INCLUDE_DIR protozero/pbf_reader.hpp)
mark_as_advanced(Protozero_INCLUDE_DIR)
if(Protozero_INCLUDE_DIR)
  file(STRINGS "${Protozero_INCLUDE_DIR}/protozero/version.hpp" _protozero_line
       REGEX "#define PROTOZERO_VERSION_STRING")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" Protozero_VERSION "${_protozero_line}")
  unset(_protozero_line)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Protozero
  REQUIRED_VARS Protozero_INCLUDE_DIR
  VERSION_VAR Protozero_VERSION
  REASON_FAILURE_MESSAGE "install the Debian package libprotozero-dev, or run scripts/env")

if(Protozero_FOUND AND NOT TARGET Protozero::protozero)
  add_library(Protozero::protozero INTERFACE IMPORTED)
  set_target_properties(Protozero::protozero PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${Protozero_INCLUDE_DIR}")
endif()
