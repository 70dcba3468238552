# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# find_package() passes over a package whose version does not fit, one that MLIR_DIR
# names too, and takes another: a plugin would then be built for an MLIR that its user
# does not have.

# Ends configuring where the folder has an MLIR of another version than 22.1.
function(ckopt_check_given_mlir folder)
  if(NOT folder OR NOT EXISTS "${folder}/MLIRConfigVersion.cmake")
    return()
  endif()
  set(PACKAGE_FIND_NAME MLIR)
  set(PACKAGE_FIND_VERSION 22.1)
  set(PACKAGE_FIND_VERSION_MAJOR 22)
  set(PACKAGE_FIND_VERSION_MINOR 1)
  set(PACKAGE_FIND_VERSION_COUNT 2)
  include("${folder}/MLIRConfigVersion.cmake")
  if(PACKAGE_VERSION AND NOT PACKAGE_VERSION_COMPATIBLE)
    message(FATAL_ERROR "MLIR_DIR names MLIR ${PACKAGE_VERSION} (${folder}), "
                        "and ckopt needs MLIR 22.1")
  endif()
endfunction()
