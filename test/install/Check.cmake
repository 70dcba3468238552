# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs, moves the installed tree, builds the examples against it, runs all.
include(${CMAKE_CURRENT_LIST_DIR}/Run.cmake)

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/moved)
# Libraries of other packages are found anew where the package is used.
file(GLOB files ${WORK}/moved/lib*/cmake/Ckopt/*.cmake
                ${WORK}/moved/lib*/*/cmake/Ckopt/*.cmake)
list(LENGTH files count)
if(count LESS 4)
  message(FATAL_ERROR "the package has but these files: ${files}")
endif()
foreach(name ${files})
  file(STRINGS ${name} paths REGEX "\"[^\"]*/[^\"]*\\.(so|a)[\";]")
  list(FILTER paths EXCLUDE REGEX "_IMPORT_PREFIX")
  if(paths)
    message(FATAL_ERROR "${name} has paths of this machine: ${paths}")
  endif()
endforeach()

foreach(table stablehlo torch)
  if(NOT EXISTS ${WORK}/moved/share/ckopt/ops/${table}.json)
    message(FATAL_ERROR "the package has no table ${table}.json")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE}/examples/planner-client -B ${WORK}/client -G Ninja
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK}/moved)
run(${CMAKE_COMMAND} --build ${WORK}/client)
run(${WORK}/client/planner-client)
# A tool of its own pass manager, over the installed MLIR libraries.
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/remat-client -B ${WORK}/remat -G Ninja
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK}/moved)
run(${CMAKE_COMMAND} --build ${WORK}/remat)
run(${WORK}/remat/remat-client ${SOURCE}/test/Plugin/Inputs/chain.mlir 0.8x)
expect("chain: 2[0-9]+ bytes instead of 28672, [1-9][0-9]* ops computed again")
# Ops, types and functions of another dialect: the draw, made cheap by its interface, runs again, the
# products with their price do not.
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/dialect-client -B ${WORK}/dialect -G Ninja
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK}/moved)
run(${CMAKE_COMMAND} --build ${WORK}/dialect)
run(${WORK}/dialect/dialect-client)
expect("draws 2, products 4")
expect("cost_model = \"callback: 2 ops, interface: 4 ops, analytic: 1 op\"")
expect("library: [0-9]+ bytes instead of [0-9]+, [1-9][0-9]* ops computed again")
# An ONNX file to a planned step, in process.
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/onnx-client -B ${WORK}/onnx -G Ninja
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK}/moved)
run(${CMAKE_COMMAND} --build ${WORK}/onnx)
run(${WORK}/onnx/onnx-client ${SOURCE}/test/data/models/digits_cnn.onnx 1x)
expect("step: [1-9][0-9]+ bytes instead of [1-9][0-9]+, [0-9]+ kernels computed again")
# From a model to a trained one, in process: the driver's bits, and its refusals.
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/train-client -B ${WORK}/train -G Ninja
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK}/moved)
run(${CMAKE_COMMAND} --build ${WORK}/train)
set(client ${WORK}/train/train-client)
set(digits ${SOURCE}/test/data/models/digits_cnn.onnx ${SOURCE}/test/data/digits.npz)
run(${WORK}/moved/bin/ckopt train ${SOURCE}/test/data/models/digits_cnn.onnx
    --data=${SOURCE}/test/data/digits.npz --inputs=x=images --targets=labels --loss=cross_entropy --optimizer=adamw --lr=0.001
    --batch=32 --threads=2 --epochs=1000 --max-steps=20 --memory-budget=min --quiet
    -o ${WORK}/driver.safetensors)
run(${client} ${digits} min 20 0.001 ${WORK}/whole.safetensors)
expect("steps 20, measured peak [1-9][0-9]+ bytes")
run(${client} ${digits} min 10 0.001 ${WORK}/half.safetensors ${WORK}/run.ckpt)
run(${client} ${digits} 64MiB 20 0.001 ${WORK}/resumed.safetensors ${WORK}/run.ckpt resume)
# The same from a source of the program's own.
set(own ${SOURCE}/test/data/models/digits_cnn.onnx own:${SOURCE}/test/data/digits.npz)
run(${client} ${own} min 10 0.001 ${WORK}/half.safetensors ${WORK}/own.ckpt)
run(${client} ${own} 64MiB 20 0.001 ${WORK}/own.safetensors ${WORK}/own.ckpt resume)
foreach(name whole resumed own)
  run(${CMAKE_COMMAND} -E compare_files ${WORK}/driver.safetensors ${WORK}/${name}.safetensors)
endforeach()
# Programs in C find the library with CMake, or with pkg-config and another compiler.
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/c-client -B ${WORK}/c -G Ninja
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_PREFIX_PATH=${WORK}/moved)
run(${CMAKE_COMMAND} --build ${WORK}/c)
set(ctrain ${WORK}/c/c-train ${SOURCE}/test/data/models/digits_cnn.onnx ${SOURCE}/test/data/digits.npz)
run(${ctrain} min 20 0.001 ${WORK}/c-whole.safetensors)
expect("steps 20, .*planned peak [1-9][0-9]+ bytes, measured [1-9]")
run(${ctrain} min 10 0.001 ${WORK}/half.safetensors ${WORK}/c.ckpt)
run(${ctrain} 64MiB 20 0.001 ${WORK}/c-resumed.safetensors ${WORK}/c.ckpt resume)
foreach(name whole resumed)
  run(${CMAKE_COMMAND} -E compare_files ${WORK}/driver.safetensors ${WORK}/c-${name}.safetensors)
endforeach()
run(${WORK}/c/c-plan ${SOURCE}/test/ckopt-plan/Inputs/chain.json min)
expect("order: 0 .*[0-9]+ of [0-9]+ bytes")
# ckopt's passes through MLIR's C API.
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/mlir-c-client -B ${WORK}/mlir-c -G Ninja
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK}/moved)
run(${CMAKE_COMMAND} --build ${WORK}/mlir-c)
run(${WORK}/mlir-c/mlir-c-client ${SOURCE}/test/Plugin/Inputs/chain.mlir func.func\(remat{budget=min}\))
expect("ckopt.barrier")
find_program(PKG_CONFIG pkg-config)
find_program(GCC gcc)
if(PKG_CONFIG AND GCC)
  file(GLOB_RECURSE pc ${WORK}/moved/lib*/ckopt.pc)
  get_filename_component(pc ${pc} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${pc})
  run(sh -c "${GCC} -std=c11 -Wall -Wextra -Wpedantic -Werror ${SOURCE}/examples/c-client/plan.c \
      $(${PKG_CONFIG} --cflags --libs ckopt) -Wl,-rpath,$(${PKG_CONFIG} --variable=libdir ckopt) \
      -o ${WORK}/c/pc-plan")
  run(${WORK}/c/pc-plan ${SOURCE}/test/ckopt-plan/Inputs/chain.json min)
else()
  message(WARNING "pkg-config or gcc is not there: ckopt.pc is NOT tested")
endif()
# fails(code pattern command...)
function(fails code pattern)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE got ERROR_VARIABLE err OUTPUT_QUIET)
  if(NOT got EQUAL code OR NOT err MATCHES "${pattern}")
    message(FATAL_ERROR "${ARGN}\nexit code ${got} instead of ${code}, or no '${pattern}' in\n${err}")
  endif()
endfunction()
fails(1 "when the run was saved" ${client} ${digits} 64MiB 20 0.002 ${WORK}/no.safetensors ${WORK}/run.ckpt resume)
fails(2 "budget" ${client} ${digits} 1KiB 20 0.001 ${WORK}/no.safetensors)
fails(5 "finite" ${client} ${digits} 64MiB 20 1e38 ${WORK}/no.safetensors)
run(${Python3} ${CMAKE_CURRENT_LIST_DIR}/wrong_label.py ${SOURCE}/test/data/digits.npz ${WORK}/wrong.npz)
fails(1 "label|class" ${client} ${SOURCE}/test/data/models/digits_cnn.onnx ${WORK}/wrong.npz 64MiB 20
      0.001 ${WORK}/no.safetensors)
fails(1 "the program's digits: array 'target': sample [0-9]+ of epoch [0-9]+ has the label 99"
      ${client} ${SOURCE}/test/data/models/digits_cnn.onnx own:${WORK}/wrong.npz 64MiB 100 0.001
      ${WORK}/no.safetensors)
fails(1 "the data was" ${client} ${digits} 64MiB 20 0.001 ${WORK}/no.safetensors ${WORK}/own.ckpt resume)
fails(5 "finite" ${client} ${own} 64MiB 20 1e38 ${WORK}/no.safetensors)
# Refusals are the same numbers in C.
fails(1 "when the run was saved" ${ctrain} 64MiB 20 0.002 ${WORK}/no.safetensors ${WORK}/c.ckpt resume)
fails(2 "no plan fits the budget: " ${ctrain} 1KiB 20 0.001 ${WORK}/no.safetensors)
fails(5 "finite" ${ctrain} 64MiB 20 1e38 ${WORK}/no.safetensors)
fails(64 "is not a byte size" ${ctrain} 64MiBs 20 0.001 ${WORK}/no.safetensors)
fails(1 "the program's digits: samples [0-9]+ to [0-9]+ of epoch [0-9]+: .*the label 99" ${WORK}/c/c-train ${SOURCE}/test/data/models/digits_cnn.onnx
      ${WORK}/wrong.npz 64MiB 100 0.001 ${WORK}/no.safetensors)
fails(2 "no plan fits the budget: " ${WORK}/c/c-plan ${SOURCE}/test/ckopt-plan/Inputs/chain.json 1)
if(EXISTS ${WORK}/no.safetensors)
  message(FATAL_ERROR "a refused run wrote a model")
endif()
# The installed plugin in stock mlir-opt.
find_program(MLIR_OPT NAMES mlir-opt-22 mlir-opt HINTS /usr/lib/llvm-22/bin)
if(MLIR_OPT)
  run(${MLIR_OPT} --load-pass-plugin=${WORK}/moved/lib/CkoptRematPlugin.so
      --pass-pipeline=builtin.module\(func.func\(remat{budget=min}\)\)
      ${SOURCE}/test/Plugin/Inputs/chain.mlir)
  expect("ckopt.barrier")
else()
  message(WARNING "mlir-opt is not there: the installed plugin is NOT tested")
endif()
# Measuring works from the installed package, and without the library that counts it is refused.
run(${WORK}/moved/bin/ckopt compile ${SOURCE}/test/data/golden/lenet/model.onnx --loss=cross_entropy
    --optimizer=sgd --quiet -o ${WORK}/step.so)
set(measure ${WORK}/moved/bin/ckopt-run ${WORK}/step.so --random=x:0:1 --random=target:0:10 --measure)
run(${measure})
expect("measured peak [1-9][0-9]+ bytes\nallocations of 64 KiB or more during steps: 0\n")
file(GLOB counter ${WORK}/moved/lib*/libckopt_allocations.so* ${WORK}/moved/lib*/*/libckopt_allocations.so*)
file(REMOVE ${counter})
fails(1 "cannot count allocations by libckopt_allocations" ${measure})
run(${WORK}/moved/bin/ckopt --version)
run(${WORK}/moved/bin/ckopt-run --help)
run(${WORK}/moved/bin/ckopt-opt --version)
file(REMOVE_RECURSE ${WORK})
