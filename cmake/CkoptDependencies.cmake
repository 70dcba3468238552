# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Dependencies come from Debian packages, but for oneDNN, which scripts/onednn
# has put into .deps where there was a network. CMake downloads nothing.

# LLVMSupport serves Support (JSON, files, streams); MLIR the rest. What the pass
# alone asks of MLIR is in both versions (ckopt/Interfaces/Compat.h).
include(CkoptFindLlvm)
set(CKOPT_LLVM_VERSIONS 22.1 19.1)
if(CKOPT_WITH_COMPILER)
  set(CKOPT_LLVM_VERSIONS 22.1)
endif()
if(CKOPT_WITH_MLIR)
  ckopt_find(MLIR ${CKOPT_LLVM_VERSIONS})
  if(NOT MLIR_FOUND)
    message(FATAL_ERROR
      "ckopt needs MLIR 22.1 (Debian 12, through its security suite: "
      "apt-get install libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools). "
      "If it lies elsewhere, set MLIR_DIR to its lib/cmake/mlir.")
  endif()
  if(NOT LLVM_PACKAGE_VERSION VERSION_EQUAL MLIR_VERSION)
    message(FATAL_ERROR "MLIR_DIR is MLIR ${MLIR_VERSION} (${MLIR_DIR}), and LLVM_DIR is LLVM "
                        "${LLVM_PACKAGE_VERSION} (${LLVM_DIR}): give the two of one release")
  endif()
  message(STATUS "ckopt: MLIR ${MLIR_VERSION} (${MLIR_DIR})")
  set(MLIR_LINK_MLIR_DYLIB ON) # as Ckopt::Mlir
  list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
  set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR})
  set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
  set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/lib)
  include(TableGen)
  include(AddLLVM)
  include(AddMLIR)
else()
  ckopt_find(LLVM ${CKOPT_LLVM_VERSIONS})
  if(NOT LLVM_FOUND)
    message(FATAL_ERROR "Support and Planner need LLVM 22.1 (apt-get install llvm-22-dev)")
  endif()
endif()
# CMake does not keep folders in the source tree, as .deps is, in installed files.
cmake_path(IS_PREFIX CKOPT_SOURCE_DIR "${LLVM_LIBRARY_DIR}" ckopt_inside)
if(ckopt_inside)
  list(APPEND CMAKE_INSTALL_RPATH "${LLVM_LIBRARY_DIR}")
endif()
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
add_definitions(${LLVM_DEFINITIONS})

find_package(Threads REQUIRED)
# The runtime: oneDNN (f32 contractions and convolutions), OpenBLAS (f64), OpenMP.
if(CKOPT_WITH_RUNTIME)
  set(ckopt_onednn ${CKOPT_SOURCE_DIR}/.deps/onednn-2023.2.0)
  # The sums are written last, so that header and library are both there, of one
  # release; where they come later, CMake runs again. Nothing of this is cached: a
  # user's -DDNNL_LIBRARY= is.
  file(GLOB ckopt_onednn_sums CONFIGURE_DEPENDS ${ckopt_onednn}/SHA256SUMS)
  if(ckopt_onednn_sums AND NOT DNNL_LIBRARY AND NOT DNNL_INCLUDE_DIR)
    set(DNNL_INCLUDE_DIR ${ckopt_onednn}/include)
    set(DNNL_LIBRARY ${ckopt_onednn}/lib/libdnnl.so.3)
  endif()
  find_path(DNNL_INCLUDE_DIR dnnl.h NO_CACHE)
  find_library(DNNL_LIBRARY dnnl NO_CACHE)
  if(NOT DNNL_INCLUDE_DIR OR NOT DNNL_LIBRARY)
    message(FATAL_ERROR "ckopt needs oneDNN (scripts/onednn gets release 3.2; "
                        "Debian's 2.6 serves: apt-get install libdnnl-dev)")
  endif()
  if(DNNL_LIBRARY MATCHES "^${ckopt_onednn}/")
    # Nobody else has it: it is installed beside the runtime.
    set(CKOPT_OWN_DNNL ${DNNL_LIBRARY})
  else()
    message(STATUS "ckopt: oneDNN is ${DNNL_LIBRARY}, not release 3.2, which "
                   "scripts/onednn gets: fewer kernels are known to be right")
  endif()
  find_library(OPENBLAS_LIBRARY NAMES openblas
               PATH_SUFFIXES x86_64-linux-gnu/openblas-openmp openblas-openmp)
  if(NOT OPENBLAS_LIBRARY)
    message(FATAL_ERROR "ckopt needs OpenBLAS, the OpenMP flavour "
                        "(apt-get install libopenblas-openmp-dev)")
  endif()
endif()

if(CKOPT_WITH_COMPILER)
  find_package(Protobuf REQUIRED)
  find_path(ONNX_INCLUDE_DIR onnx/onnx_pb.h)
  if(NOT ONNX_INCLUDE_DIR)
    message(FATAL_ERROR "ckopt needs the ONNX schema (apt-get install libonnx-dev)")
  endif()
endif()

if(CKOPT_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

# Bounds by linear programs.
option(CKOPT_CLP "Use Clp for linear programs (off: weaker bounds, which is said)" ON)
include(CkoptLibraries)
