# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The installed package: headers, libraries, tools, find_package(Ckopt).
include(CMakePackageConfigHelpers)
set(CKOPT_BUILT_WITH ${LLVM_VERSION_MAJOR}.${LLVM_VERSION_MINOR})
foreach(library PNG JPEG)
  if(NOT CKOPT_WITH_RUNTIME)
    set(CKOPT_HAVE_${library} OFF)
  endif()
endforeach()
set(CKOPT_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Ckopt)
# Headers of all layers, or of those that are built (lib/CMakeLists.txt).
set(folders "")
if(NOT CKOPT_WITH_COMPILER)
  get_property(layers GLOBAL PROPERTY CKOPT_LAYERS)
  foreach(layer ${layers})
    string(REGEX REPLACE "^Transforms/" "" layer ${layer})
    list(APPEND folders /${layer})
  endforeach()
endif()
foreach(root ${CKOPT_SOURCE_DIR} ${CKOPT_BINARY_DIR})
  foreach(folder IN LISTS folders ITEMS "")
    if(EXISTS ${root}/include/ckopt${folder} AND (CKOPT_WITH_COMPILER OR folder))
      install(DIRECTORY ${root}/include/ckopt${folder}/
              DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ckopt${folder}
              FILES_MATCHING PATTERN "*.h" PATTERN "*.inc" PATTERN "*.td"
              PATTERN "CMakeFiles" EXCLUDE)
    endif()
  endforeach()
endforeach()
install(EXPORT CkoptTargets DESTINATION ${CKOPT_CMAKE_DIR})
set(CKOPT_CONFIG_INCLUDES "\"\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_INCLUDEDIR}\"")
set(CKOPT_CONFIG_LIBRARIES "\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_LIBDIR}")
configure_package_config_file(${CKOPT_SOURCE_DIR}/cmake/CkoptConfig.cmake.in
  ${CKOPT_BINARY_DIR}/installed/CkoptConfig.cmake INSTALL_DESTINATION ${CKOPT_CMAKE_DIR})
write_basic_package_version_file(${CKOPT_BINARY_DIR}/CkoptConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CKOPT_BINARY_DIR}/installed/CkoptConfig.cmake
              ${CKOPT_BINARY_DIR}/CkoptConfigVersion.cmake
              ${CKOPT_SOURCE_DIR}/cmake/CkoptLibraries.cmake
        DESTINATION ${CKOPT_CMAKE_DIR})

# The same for the build tree: -DCkopt_DIR=BUILD finds what is not installed.
export(EXPORT CkoptTargets FILE ${CKOPT_BINARY_DIR}/CkoptTargets.cmake)
set(CKOPT_CONFIG_INCLUDES "\"${CKOPT_SOURCE_DIR}/include\" \"${CKOPT_BINARY_DIR}/include\"")
set(CKOPT_CONFIG_LIBRARIES "${CKOPT_BINARY_DIR}/lib")
configure_package_config_file(${CKOPT_SOURCE_DIR}/cmake/CkoptConfig.cmake.in
  ${CKOPT_BINARY_DIR}/CkoptConfig.cmake INSTALL_DESTINATION ${CKOPT_BINARY_DIR}
  INSTALL_PREFIX ${CKOPT_BINARY_DIR})
configure_file(${CKOPT_SOURCE_DIR}/cmake/CkoptLibraries.cmake
               ${CKOPT_BINARY_DIR}/CkoptLibraries.cmake COPYONLY)

# Tables that describe the ops of other dialects.
if(CKOPT_WITH_MLIR)
  install(DIRECTORY ${CKOPT_SOURCE_DIR}/share/ckopt
          DESTINATION ${CMAKE_INSTALL_DATAROOTDIR})
endif()
