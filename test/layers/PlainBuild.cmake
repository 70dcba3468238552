# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds what must not need MLIR (Support, Planner, Runtime) as a project
# without the compiler, and checks that no library of it refers to MLIR's, nor
# the runtime's to LLVM's. Variables: SOURCE, BUILD, GENERATOR, CXX, CC.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(status)
    list(JOIN ARGN " " line)
    message(FATAL_ERROR "${line}\n${output}")
  endif()
endfunction()

run(${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G ${GENERATOR}
    "-DCKOPT_COMPONENTS=planner;runtime" -DCKOPT_BUILD_TESTS=OFF -DCKOPT_WERROR=ON
    -DCMAKE_BUILD_TYPE=Debug
    -DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON
    -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER=${CC})
run(${CMAKE_COMMAND} --build ${BUILD} --parallel 2)

file(GLOB libraries ${BUILD}/lib/*.a ${BUILD}/lib/*.so)
list(LENGTH libraries count)
if(count LESS 3)
  message(FATAL_ERROR "expected Support, Planner and Runtime, got: ${libraries}")
endif()
set(LIBRARIES ${libraries})
include(${CMAKE_CURRENT_LIST_DIR}/CheckSymbols.cmake)
