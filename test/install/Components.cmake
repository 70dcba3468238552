# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A build of one component (cmake/CkoptComponents.cmake) links no more than it says,
# is found by other projects once installed, and passes its lit suites.
# Variables: COMPONENT (planner or remat), SOURCE, WORK, CXX, CC; MLIR_19 (may be empty)
# for the pass with MLIR 19, which is skipped where there is none.
include(${CMAKE_CURRENT_LIST_DIR}/Run.cmake)

# Refuses a file that needs a library of another component.
function(check_needed file)
  run(readelf -d ${file})
  if(output MATCHES "NEEDED[^\n]*(ckopt_runtime|dnnl|openblas|protobuf|onnx|libmpi|libz\\.|gomp)")
    message(FATAL_ERROR "${file} needs ${CMAKE_MATCH_1}:\n${output}")
  endif()
endfunction()

if(DEFINED MLIR_19)
  foreach(folder ${SOURCE}/.deps/mlir-19/usr/lib/llvm-19/lib/cmake/mlir
                 /usr/lib/llvm-19/lib/cmake/mlir)
    if(NOT MLIR_19 AND EXISTS ${folder}/MLIRConfig.cmake)
      set(MLIR_19 ${folder})
    endif()
  endforeach()
  if(NOT MLIR_19)
    message("SKIPPED: no MLIR 19 (scripts/mlir-19 gets it): the pass is NOT tested with it")
    return()
  endif()
endif()
set(given)
if(MLIR_19)
  set(given -DMLIR_DIR=${MLIR_19})
endif()
set(options -DCKOPT_COMPONENTS=${COMPONENT} -DCKOPT_WERROR=ON -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_C_COMPILER=${CC} ${given})
if(MLIR_19)
  # CMake keeps folders in the source tree, as .deps is, from installed programs.
  cmake_path(SET libraries NORMALIZE ${MLIR_19}/../..)
  set(ENV{LD_LIBRARY_PATH} ${libraries})
endif()
if(COMPONENT STREQUAL "planner")
  # Without linear programs, which it says.
  list(APPEND options -DCKOPT_CLP=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON)
endif()
set(build ${WORK}/build)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${build} -G Ninja -DCKOPT_BUILD_TESTS=OFF
    -DCMAKE_BUILD_TYPE=Release ${options})
run(${CMAKE_COMMAND} --build ${build} --parallel 2)
file(REMOVE_RECURSE ${WORK}/installed)
run(${CMAKE_COMMAND} --install ${build} --prefix ${WORK}/installed)
check_needed(${WORK}/installed/bin/ckopt-plan)
run(${WORK}/installed/bin/ckopt-plan ${SOURCE}/test/ckopt-plan/Inputs/chain.json --minimum)
if(COMPONENT STREQUAL "planner")
  expect("bounds are those without linear programs: built without Clp")
elseif(output MATCHES "linear programs")
  message(FATAL_ERROR "Clp is there, and the planner says it is not:\n${output}")
endif()

# client(NAME): the project in examples/ finds what is installed.
function(client name)
  file(REMOVE_RECURSE ${WORK}/${name})
  run(${CMAKE_COMMAND} -S ${SOURCE}/examples/${name} -B ${WORK}/${name} -G Ninja
      -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK}/installed
      ${given})
  run(${CMAKE_COMMAND} --build ${WORK}/${name})
  run(${WORK}/${name}/${name} ${ARGN})
  set(output "${output}" PARENT_SCOPE)
endfunction()
client(planner-client)
if(COMPONENT STREQUAL "remat")
  check_needed(${WORK}/installed/bin/ckopt-remat-opt)
  file(GLOB plugin ${WORK}/installed/lib*/CkoptRematPlugin.so)
  check_needed("${plugin}")
  client(remat-client ${SOURCE}/test/Plugin/Inputs/chain.mlir 0.8x)
  expect("chain: 2[0-9]+ bytes instead of 28672, [1-9][0-9]* ops computed again")
  # The pass's own tests, by what was built.
  run(${CMAKE_COMMAND} ${build} -DCKOPT_BUILD_TESTS=ON)
  run(${CMAKE_CTEST_COMMAND} --test-dir ${build} -R "^lit.ir$" --output-on-failure)
  expect("100% tests passed, 0 tests failed out of 1")
endif()
file(REMOVE_RECURSE ${WORK}/installed)
