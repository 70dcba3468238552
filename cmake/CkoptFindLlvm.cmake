# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds MLIR or LLVM. find_package() passes over a package whose version does not
# fit, one that MLIR_DIR names too, and takes another: a plugin would then be built
# for an MLIR that its user does not have.

# ckopt_check_given(MLIR|LLVM FOLDER VERSIONS...) ends configuring where the folder,
# if one is given, has none of these versions.
function(ckopt_check_given package folder)
  if(NOT folder)
    return()
  endif()
  list(JOIN ARGN " or " known)
  set(named "${package}_DIR names '${folder}'")
  if(NOT EXISTS "${folder}/${package}Config.cmake" OR
     NOT EXISTS "${folder}/${package}ConfigVersion.cmake")
    message(FATAL_ERROR "${named}, where no ${package}Config.cmake lies: give the "
                        "folder of that file in an installed ${package} ${known}")
  endif()
  include("${folder}/${package}ConfigVersion.cmake")
  foreach(version ${ARGN})
    if(PACKAGE_VERSION MATCHES "^${version}(\\.|$)")
      return()
    endif()
  endforeach()
  set(hint "")
  if(CKOPT_WITH_COMPILER AND PACKAGE_VERSION MATCHES "^19\\.1")
    set(hint "; the pass alone takes it: -DCKOPT_COMPONENTS=remat")
  endif()
  message(FATAL_ERROR "${named}, which is ${package} ${PACKAGE_VERSION}, and what is built needs "
                      "${package} ${known}: its C++ interface changes from release to release${hint}")
endfunction()

# ckopt_find(MLIR|LLVM VERSIONS...): finds the one that is given, or else the first of
# the versions that is there, in Debian's folders too.
macro(ckopt_find package)
  string(TOLOWER ${package} ckopt_folder)
  ckopt_check_given(${package} "${${package}_DIR}" ${ARGN})
  if(${package}_DIR)
    find_package(${package} CONFIG REQUIRED PATHS ${${package}_DIR} NO_DEFAULT_PATH)
  endif()
  foreach(ckopt_version ${ARGN})
    if(NOT ${package}_FOUND)
      string(REGEX MATCH "^[0-9]+" ckopt_major ${ckopt_version})
      find_package(${package} ${ckopt_version} CONFIG QUIET
                   HINTS /usr/lib/llvm-${ckopt_major}/lib/cmake/${ckopt_folder})
    endif()
  endforeach()
endmacro()
