# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What is built: CKOPT_COMPONENTS, `all` or a list of
#   planner  the planner and ckopt-plan: LLVM
#   remat    the planner; the pass, the plugin and ckopt-remat-opt: MLIR
#   runtime  what loads and runs compiled steps, and ckopt-run: oneDNN, OpenBLAS
# CKOPT_WITH_MLIR, _RUNTIME and _COMPILER (all) say it to the rest of the build.
set(CKOPT_COMPONENTS all CACHE STRING "What to build: all, or of planner;remat;runtime")
set(CKOPT_WITH_COMPILER OFF)
set(CKOPT_WITH_MLIR OFF)
set(CKOPT_WITH_RUNTIME OFF)
foreach(component ${CKOPT_COMPONENTS})
  if(component STREQUAL "all")
    set(CKOPT_WITH_COMPILER ON)
    set(CKOPT_WITH_MLIR ON)
    set(CKOPT_WITH_RUNTIME ON)
  elseif(component STREQUAL "remat")
    set(CKOPT_WITH_MLIR ON)
  elseif(component STREQUAL "runtime")
    set(CKOPT_WITH_RUNTIME ON)
  elseif(NOT component STREQUAL "planner")
    message(FATAL_ERROR "CKOPT_COMPONENTS: there is no '${component}'; there are "
                        "all, planner, remat and runtime")
  endif()
endforeach()
if(NOT CKOPT_COMPONENTS)
  message(FATAL_ERROR "CKOPT_COMPONENTS is empty; there are all, planner, remat and runtime")
endif()
