# Install and export: headers, static libraries, the command, and a package that find_package(podsim) finds.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# Called last, when every library has been declared.
function(podsim_install_package)
  get_property(targets GLOBAL PROPERTY PODSIM_INSTALLED_TARGETS)
  set(package "${CMAKE_INSTALL_LIBDIR}/cmake/podsim")
  install(TARGETS ${targets} EXPORT podsimTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" #
          FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/podsim")
  if(TARGET podsim)
    install(TARGETS podsim RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  endif()
  install(EXPORT podsimTargets NAMESPACE podsim:: DESTINATION "${package}")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/podsimConfig.cmake.in" "${PROJECT_BINARY_DIR}/podsimConfig.cmake"
                                INSTALL_DESTINATION "${package}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/podsimConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/podsimConfig.cmake" "${PROJECT_BINARY_DIR}/podsimConfigVersion.cmake"
                "${PROJECT_SOURCE_DIR}/cmake/FindOpenBLAS.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindSimGrid.cmake" DESTINATION "${package}")
endfunction()
