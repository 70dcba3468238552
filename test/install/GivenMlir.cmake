# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The MLIR that -DMLIR_DIR names is taken or refused: an error says both versions, in
# place of a build against the one that the system has.
set(folder ${WORK}/other-mlir)
file(WRITE ${WORK}/check.cmake
  "include(${SOURCE}/cmake/CkoptFindLlvm.cmake)\nckopt_check_given(MLIR \"\${MLIR_DIR}\" \${KNOWN})\n")
# check(VERSION KNOWN OUTCOME): what is said of an MLIR of that version (empty: none in
# the folder); an empty outcome: it is taken.
function(check version known outcome)
  file(REMOVE_RECURSE ${folder})
  if(version)
    file(WRITE ${folder}/MLIRConfig.cmake "")
    file(WRITE ${folder}/MLIRConfigVersion.cmake "set(PACKAGE_VERSION \"${version}\")\n")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -DMLIR_DIR=${folder} "-DKNOWN=${known}" -P ${WORK}/check.cmake
                  RESULT_VARIABLE code ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  if(outcome STREQUAL "" AND NOT code EQUAL 0)
    message(FATAL_ERROR "MLIR ${version} was refused: ${text}")
  endif()
  if(NOT outcome STREQUAL "" AND (code EQUAL 0 OR NOT text MATCHES "${outcome}"))
    message(FATAL_ERROR "MLIR ${version}: ${code} ${text}")
  endif()
endfunction()
check(22.1.7 "22.1" "")
check(22.1.0 "22.1;19.1" "")
check(19.1.7 "22.1;19.1" "")
check(19.1.7 "22.1" "MLIR_DIR names .*which is MLIR 19.1.7, and what is built needs MLIR 22.1: ")
check(21.1.8 "22.1;19.1" "which is MLIR 21.1.8, and what is built needs MLIR 22.1 or 19.1: ")
check(22.10.0 "22.1;19.1" "which is MLIR 22.10.0, ")
check("" "22.1;19.1" "MLIR_DIR names .*where no MLIRConfig.cmake lies")
