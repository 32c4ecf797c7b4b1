# SPDX-License-Identifier: Apache-2.0
# This folder as a project of its own. The engine's library is installed beside the backend's.
set(ANYMPS_TRITON_STANDALONE ON)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/standalone_door.cmake)
add_subdirectory(${ANYMPS_ROOT}/doors/serving serving EXCLUDE_FROM_ALL)

# The engine's library, and oneDNN where it is not the system's.
find_package(OneDNN QUIET)
if(ANYMPS_ENGINE)
  install(CODE "
    file(REAL_PATH \"${ANYMPS_ENGINE}\" library)
    get_filename_component(folder \"\${library}\" DIRECTORY)
    file(GLOB names \"\${folder}/libanymps.so*\")
    file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/backends/metal_mps\" TYPE SHARED_LIBRARY FILES \${names})
    file(GLOB names \"\${CMAKE_INSTALL_PREFIX}/backends/metal_mps/libanymps.so.*.*\")
    foreach(name IN LISTS names)
      file(RPATH_SET FILE \"\${name}\" NEW_RPATH \"\\\$ORIGIN\")
    endforeach()
  ")
else()
  install(TARGETS anymps LIBRARY DESTINATION backends/metal_mps)
endif()
if(COMMAND anymps_install_onednn)
  anymps_install_onednn(backends/metal_mps)
endif()
