# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# -DMLIR_DIR of another MLIR is an error that says both versions, in place of a build
# against the one that the system has.
set(folder ${WORK}/other-mlir)
file(WRITE ${folder}/MLIRConfigVersion.cmake [=[
set(PACKAGE_VERSION "19.1.7")
if("19.1" VERSION_EQUAL "${PACKAGE_FIND_VERSION_MAJOR}.${PACKAGE_FIND_VERSION_MINOR}")
  set(PACKAGE_VERSION_COMPATIBLE 1)
endif()
]=])
file(WRITE ${WORK}/check.cmake
  "include(${SOURCE}/cmake/CkoptGivenMlir.cmake)\nckopt_check_given_mlir(\"\${MLIR_DIR}\")\n")
macro(check dir)
  execute_process(COMMAND ${CMAKE_COMMAND} -DMLIR_DIR=${dir} -P ${WORK}/check.cmake
                  RESULT_VARIABLE code ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
endmacro()
check(${folder})
if(code EQUAL 0 OR NOT text MATCHES "MLIR_DIR names MLIR 19.1.7.*ckopt needs MLIR 22.1")
  message(FATAL_ERROR "MLIR 19.1.7 was taken: ${code} ${text}")
endif()
file(READ ${folder}/MLIRConfigVersion.cmake config)
string(REPLACE "19.1" "22.1" config "${config}")
file(WRITE ${folder}/MLIRConfigVersion.cmake "${config}")
check(${folder})
if(NOT code EQUAL 0)
  message(FATAL_ERROR "MLIR 22.1.7 was refused: ${text}")
endif()
