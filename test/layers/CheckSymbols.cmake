# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# No plain library refers to a symbol of MLIR's, and no library of the runtime to
# one of LLVM's. Variable: LIBRARIES.
find_program(NM NAMES nm llvm-nm-22 REQUIRED)
foreach(library ${LIBRARIES})
  set(dynamic)
  if(library MATCHES "\\.so")
    set(dynamic -D)
  endif()
  execute_process(COMMAND ${NM} -u -C ${dynamic} ${library} OUTPUT_VARIABLE symbols
                  ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  string(LENGTH "${symbols}" length)
  if(length EQUAL 0)
    message(FATAL_ERROR "${library} needs no symbols at all: nothing was checked")
  endif()
  if(symbols MATCHES "( mlir::[^\n]*)")
    message(FATAL_ERROR "${library} refers to MLIR:${CMAKE_MATCH_1}")
  endif()
  if(library MATCHES "runtime|cuda" AND symbols MATCHES "( llvm::[^\n]*)")
    message(FATAL_ERROR "${library} refers to LLVM:${CMAKE_MATCH_1}")
  endif()
endforeach()
