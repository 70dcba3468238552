# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds the compiler up to its memory plan with the address sanitizer and takes
# golden networks through every phase: imported, differentiated, fused,
# recomputed under the smallest budget, planned, and interpreted after each.
# `scripts/test --long` does the same to everything. Without optimization the
# build takes half the time, and objects lie on the stack as they are written.
# Variables: SOURCE, BUILD, GENERATOR, CXX, CC.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(status)
    list(JOIN ARGN " " line)
    message(FATAL_ERROR "${line}\n${output}")
  endif()
endfunction()

run(${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G ${GENERATOR}
    -DCKOPT_SANITIZERS=address -DCMAKE_BUILD_TYPE=Debug
    -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER=${CC})
run(${CMAKE_COMMAND} --build ${BUILD} --parallel 2 --target PhaseEquivalenceTest)
# LLVM's headers poison arena memory that its library, which is not
# instrumented, uses again.
set(ENV{ASAN_OPTIONS} allow_user_poisoning=0:detect_leaks=0)
run(${BUILD}/unittests/PhaseEquivalenceTest
    "--gtest_filter=*/mlp:*/lenet")
