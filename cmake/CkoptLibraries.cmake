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

ckopt_import_library(Ckopt::Clp Clp coinor-libclp-dev)
ckopt_import_library(Ckopt::CoinUtils CoinUtils coinor-libcoinutils-dev)
if(CKOPT_BUILD_COMPILER)
  ckopt_import_library(Ckopt::OnnxProto onnx_proto libonnx-dev)
endif()
