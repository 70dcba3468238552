# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs a program, which ends the test where it fails.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nfailed with ${code}\n${out}\n${err}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

# The last run's output.
function(expect pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "no '${pattern}' in\n${output}")
  endif()
endfunction()
