# Builds what must not need MLIR (Support, Planner, Runtime) as a project
# without the compiler, under the address and undefined-behaviour sanitizers,
# and checks that no library of it refers to MLIR's, nor the runtime's to
# LLVM's. Under the sanitizers run its unit tests, and a golden network that the
# build beside it (folder TOOLS) compiled: planned at a budget, and run.
# Variables: SOURCE, BUILD, GENERATOR, CXX, CC, TOOLS.

# What an unnoticed error would print must end the program. LLVM's headers poison
# arena memory that its library, which is not instrumented, uses again.
set(ENV{ASAN_OPTIONS} allow_user_poisoning=0:detect_leaks=0)
set(ENV{UBSAN_OPTIONS} halt_on_error=1:print_stacktrace=1)
set(ENV{GOMP_SPINCOUNT} 2000)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(status)
    list(JOIN ARGN " " line)
    message(FATAL_ERROR "${line}\n${output}")
  endif()
endfunction()

run(${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G ${GENERATOR}
    -DCKOPT_BUILD_COMPILER=OFF -DCKOPT_UNITY=ON
    -DCKOPT_SANITIZERS=address,undefined -DCMAKE_BUILD_TYPE=Debug
    "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -gline-tables-only"
    -DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER=${CC})
run(${CMAKE_COMMAND} --build ${BUILD} --parallel 2 --target
    ckopt-plan ckopt-run CkoptSupportTests RuntimeTests CudaRuntimeTests)

file(GLOB libraries ${BUILD}/lib/*.a ${BUILD}/lib/*.so)
list(LENGTH libraries count)
if(count LESS 3)
  message(FATAL_ERROR "expected Support, Planner and Runtime, got: ${libraries}")
endif()
find_program(NM NAMES nm llvm-nm-22 REQUIRED)
foreach(library ${libraries})
  set(dynamic)
  if(library MATCHES "\\.so$")
    set(dynamic -D)
  endif()
  execute_process(COMMAND ${NM} -u -C ${dynamic} ${library} OUTPUT_VARIABLE symbols
                  ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  if(symbols MATCHES "( mlir::[^\n]*)")
    message(FATAL_ERROR "${library} refers to MLIR:${CMAKE_MATCH_1}")
  endif()
  if(library MATCHES "runtime|cuda" AND symbols MATCHES "( llvm::[^\n]*)")
    message(FATAL_ERROR "${library} refers to LLVM:${CMAKE_MATCH_1}")
  endif()
endforeach()

run(${BUILD}/unittests/CkoptSupportTests)
run(${BUILD}/unittests/RuntimeTests)
run(${BUILD}/unittests/CudaRuntimeTests)

set(model ${SOURCE}/test/data/golden/lenet)
set(loss --loss=cross_entropy --optimizer=sgd --quiet)
run(${TOOLS}/ckopt plan ${model}/model.onnx ${loss} --graph-out=${BUILD}/lenet.json)
run(${BUILD}/bin/ckopt-plan ${BUILD}/lenet.json --minimum --effort=0.1)
run(${TOOLS}/ckopt compile ${model}/model.onnx ${loss} --minimum --effort=0.1
    -o ${BUILD}/lenet.so)
run(${BUILD}/bin/ckopt-run ${BUILD}/lenet.so --steps=3 --check-arena
    --random=x:-1:1 --random=target:0:9)
