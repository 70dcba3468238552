# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiler flags: warnings, no exceptions (Frontend/Onnx turns them on for
# itself), RTTI on as in Debian's MLIR, ccache and lld where present. The compiler
# is the user's choice, and so are flags that are not CMake's defaults. Presets
# choose clang-22: it parses MLIR's headers in two thirds of g++'s time.

find_program(CKOPT_CCACHE ccache)
if(CKOPT_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CKOPT_CCACHE})
  # A precompiled header makes ccache look at times unless told not to.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${CKOPT_CCACHE})
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND
   NOT "${CMAKE_CXX_FLAGS} ${CMAKE_EXE_LINKER_FLAGS}" MATCHES "-fuse-ld=|--ld-path=")
  find_program(CKOPT_LLD NAMES ld.lld-22 ld.lld)
  if(CKOPT_LLD)
    add_link_options(--ld-path=${CKOPT_LLD})
  endif()
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -fvisibility-inlines-hidden
                    -ffp-contract=off)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-warning-option>
                      -Wcovered-switch-default)
endif()
if(CKOPT_WERROR)
  add_compile_options(-Werror)
endif()
if(CKOPT_ASSERTIONS)
  # NDEBUG stays undefined in our own code; the MLIR headers are built for both
  # (LLVM_ENABLE_ABI_BREAKING_CHECKS lies in llvm-config.h, not in NDEBUG).
  string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
  string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
  string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")
endif()
if(CMAKE_CXX_FLAGS_RELEASE MATCHES "^-O3( -DNDEBUG| )?$") # CMake's default
  string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
endif()

# A unity file takes up to 2.5 GB to compile: where memory is short, fewer are
# compiled at a time than there are cores.
if(CMAKE_GENERATOR MATCHES "Ninja" AND NOT DEFINED CMAKE_JOB_POOL_COMPILE)
  cmake_host_system_information(RESULT mebibytes QUERY TOTAL_PHYSICAL_MEMORY)
  math(EXPR jobs "1 + ${mebibytes} / 2500")
  set_property(GLOBAL APPEND PROPERTY JOB_POOLS ckopt_compile=${jobs})
  set(CMAKE_JOB_POOL_COMPILE ckopt_compile)
endif()

if(CKOPT_SANITIZERS)
  add_compile_options(-fsanitize=${CKOPT_SANITIZERS} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CKOPT_SANITIZERS})
endif()
