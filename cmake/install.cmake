# SPDX-License-Identifier: Apache-2.0
# `cmake --install` and find_package(anymps) for users of the library.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS anymps EXPORT anymps-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/anymps DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT anymps-targets NAMESPACE anymps:: FILE anymps-config.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/anymps)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/anymps-config-version.cmake
                                 COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/anymps-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/anymps)
anymps_install_private(${CMAKE_INSTALL_LIBDIR})
