# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Imported targets for libraries that bring no CMake package. The build uses
# them, and so do clients of the installed package, which find the libraries
# anew: no path of this machine is in what is installed.

# ckopt_import_library(TARGET LIBRARY PACKAGE): TARGET links libLIBRARY.
function(ckopt_import_library target library package)
  if(TARGET ${target})
    return()
  endif()
  string(MAKE_C_IDENTIFIER "CKOPT_${library}_LIBRARY" path)
  find_library(${path} ${library})
  mark_as_advanced(${path})
  if(NOT ${path})
    message(FATAL_ERROR "ckopt needs lib${library} (apt-get install ${package})")
  endif()
  # Seen everywhere: targets of other folders link it.
  add_library(${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${${path}})
endfunction()

# ckopt_import_llvm(): Ckopt::Llvm serves Support (JSON, files, streams), Ckopt::Mlir
# the rest. Debian builds MLIR as one shared library but does not say so to consumers:
# two copies of MLIR in a process have two sets of TypeIDs. With CKOPT_STATIC (a
# module for machines without them) both are archives, of which lld takes what is
# used, in any order.
function(ckopt_import_llvm)
  if(TARGET Ckopt::Llvm)
    return()
  endif()
  add_library(Ckopt::Llvm INTERFACE IMPORTED GLOBAL)
  add_library(Ckopt::Mlir INTERFACE IMPORTED GLOBAL)
  if(NOT CKOPT_STATIC)
    target_link_libraries(Ckopt::Llvm INTERFACE LLVM)
    target_link_libraries(Ckopt::Mlir INTERFACE MLIR Ckopt::Llvm)
    return()
  endif()
  find_library(CKOPT_ZSTD_ARCHIVE libzstd.a)
  find_library(CKOPT_ZLIB_ARCHIVE libz.a)
  file(GLOB mlir ${LLVM_LIBRARY_DIR}/libMLIR*.a)
  file(GLOB llvm ${LLVM_LIBRARY_DIR}/libLLVM*.a)
  if(NOT CKOPT_ZSTD_ARCHIVE OR NOT CKOPT_ZLIB_ARCHIVE OR NOT mlir OR NOT llvm)
    message(FATAL_ERROR "CKOPT_STATIC needs archives of MLIR, LLVM, zlib and zstd "
      "(apt-get install libmlir-22-dev llvm-22-dev zlib1g-dev libzstd-dev)")
  endif()
  target_link_libraries(Ckopt::Llvm INTERFACE
    ${llvm} ${CKOPT_ZLIB_ARCHIVE} ${CKOPT_ZSTD_ARCHIVE} ${CMAKE_DL_LIBS})
  target_link_libraries(Ckopt::Mlir INTERFACE ${mlir} Ckopt::Llvm)
endfunction()

ckopt_import_llvm()
if(CKOPT_CLP AND NOT "${CKOPT_COMPONENTS}" STREQUAL "runtime")
  ckopt_import_library(Ckopt::Clp Clp "coinor-libclp-dev, or build with -DCKOPT_CLP=OFF")
  ckopt_import_library(Ckopt::CoinUtils CoinUtils coinor-libcoinutils-dev)
endif()
if(CKOPT_WITH_COMPILER)
  ckopt_import_library(Ckopt::OnnxProto onnx_proto libonnx-dev)
endif()
