# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Functions that say once how a library, tool, unit test or pass header of
# ckopt is made.
include_guard()

# add_ckopt_library(NAME sources... [LINK_LIBS libs...] [DEPENDS targets...]
# [PCH header])
# A static library without MLIR: Base, Support, Planner.
function(add_ckopt_library name)
  cmake_parse_arguments(ARG "" "PCH" "LINK_LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  ckopt_use_pch(${name} ${ARG_PCH})
  install(TARGETS ${name} EXPORT CkoptTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_property(GLOBAL APPEND PROPERTY CKOPT_LIBS ${name})
endfunction()

# add_ckopt_mlir_library(NAME sources... [LINK_LIBS ...] [DEPENDS ...] [PCH header])
# A static library over MLIR.
function(add_ckopt_mlir_library name)
  cmake_parse_arguments(ARG "" "PCH" "LINK_LIBS;DEPENDS" ${ARGN})
  if(NOT ARG_PCH)
    set(ARG_PCH Mlir)
  endif()
  add_ckopt_library(${name} ${ARG_UNPARSED_ARGUMENTS} LINK_LIBS ${ARG_LINK_LIBS} Ckopt::Mlir
                    DEPENDS ${ARG_DEPENDS} ckopt-headers PCH ${ARG_PCH})
endfunction()

# ckopt_use_pch(NAME [header]): compiles the target with the precompiled
# cmake/pch/HEADER.h (without one: Standard; None), which CMake makes once for all.
function(ckopt_use_pch name)
  set(header Standard)
  if(ARGC GREATER 1)
    set(header ${ARGV1})
  endif()
  if(NOT CKOPT_PCH OR header STREQUAL None)
    return()
  endif()
  # A precompiled header fits code of one kind only: executables, too, are
  # compiled as -fPIC.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  set(pch ckopt-pch-${header})
  if(NOT TARGET ${pch})
    file(WRITE ${CKOPT_BINARY_DIR}/${pch}.cpp "// Carries the precompiled header.\n")
    add_library(${pch} OBJECT ${CKOPT_BINARY_DIR}/${pch}.cpp)
    set_target_properties(${pch} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${pch} PRIVATE -fPIC)
    target_precompile_headers(${pch} PRIVATE ${CKOPT_SOURCE_DIR}/cmake/pch/${header}.h)
    if(header MATCHES Test)
      target_link_libraries(${pch} PRIVATE GTest::gtest) # for its definitions
    endif()
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      # Lets ccache keep objects that were built with the header.
      target_compile_options(${pch} PUBLIC -fpch-instantiate-templates)
      target_compile_options(${pch} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    endif()
  endif()
  target_precompile_headers(${name} REUSE_FROM ${pch})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${name} PRIVATE -fpch-instantiate-templates "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# add_ckopt_tool(NAME sources... [LINK_LIBS ...] [PLAIN])
# PLAIN: no MLIR.
function(add_ckopt_tool name)
  cmake_parse_arguments(ARG "PLAIN" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS})
  if(NOT ARG_PLAIN)
    target_link_libraries(${name} PRIVATE Ckopt::Mlir)
    add_dependencies(${name} ckopt-headers)
    ckopt_use_pch(${name} Mlir)
  endif()
  install(TARGETS ${name} EXPORT CkoptTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  set_property(GLOBAL APPEND PROPERTY CKOPT_TOOLS ${name})
endfunction()

# Where test programs find their data.
function(ckopt_add_test_paths name)
  target_compile_definitions(${name} PRIVATE
    CKOPT_TEST_DATA="${CKOPT_SOURCE_DIR}/test/data"
    CKOPT_SHARED_DIR="${CKOPT_SOURCE_DIR}/../shared")
endfunction()

# add_ckopt_test_library(NAME sources... [LINK_LIBS ...]): what several test
# programs share, with MLIR; compiled once, not installed.
function(add_ckopt_test_library name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS} Ckopt::Mlir)
  ckopt_add_test_paths(${name})
  add_dependencies(${name} ckopt-headers)
  ckopt_use_pch(${name} Mlir)
endfunction()

# Tests of more than about 15 seconds, which `scripts/test --quick` leaves out.
# Call it in the folder that adds them.
function(ckopt_slow_tests)
  ckopt_label_tests(slow ${ARGN})
endfunction()

# What only `scripts/test --long` runs: packages, networks out of PyTorch.
function(ckopt_long_tests)
  ckopt_label_tests(long ${ARGN})
endfunction()

# What .ci/run runs, too, behind scripts/test: minutes for what rarely breaks.
function(ckopt_landing_tests)
  ckopt_label_tests(long ${ARGN})
  ckopt_label_tests(landing ${ARGN})
endfunction()

function(ckopt_label_tests label)
  foreach(test ${ARGN})
    if(TEST ${test})
      set_property(TEST ${test} APPEND PROPERTY LABELS ${label})
    endif()
  endforeach()
endfunction()

# add_ckopt_unittest(NAME sources... [LINK_LIBS ...] [PLAIN] [SLOW] [PCH header]
# [TEST_NAME name]): a gtest program that ctest runs, as unit.NAME or by the name given.
# PLAIN: no MLIR. SLOW: not among the quick tests.
function(add_ckopt_unittest name)
  cmake_parse_arguments(ARG "PLAIN;SLOW" "TEST_NAME;PCH" "LINK_LIBS" ${ARGN})
  if(NOT ARG_PCH)
    set(ARG_PCH Mlir)
  endif()
  if(NOT ARG_TEST_NAME)
    set(ARG_TEST_NAME unit.${name})
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} GTest::gtest GTest::gtest_main)
  ckopt_add_test_paths(${name})
  if(ARG_PLAIN)
    # Without MLIR's headers there is little to gain, and names may repeat.
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
    ckopt_use_pch(${name} PlainTest)
  else()
    target_link_libraries(${name} PRIVATE Ckopt::Mlir)
    add_dependencies(${name} ckopt-headers)
    ckopt_use_pch(${name} ${ARG_PCH})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CKOPT_BINARY_DIR}/unittests)
  add_test(NAME ${ARG_TEST_NAME} COMMAND ${name})
  # Tests share the cores: threads that wait sleep soon. scripts/slowest reads
  # how long each case takes.
  set_tests_properties(${ARG_TEST_NAME} PROPERTIES ENVIRONMENT
    "GOMP_SPINCOUNT=2000;GTEST_OUTPUT=xml:${CKOPT_BINARY_DIR}/Testing/cases/${ARG_TEST_NAME}.xml")
  if(ARG_SLOW)
    ckopt_slow_tests(${ARG_TEST_NAME})
  endif()
  set_property(GLOBAL APPEND PROPERTY CKOPT_UNITTESTS ${name})
endfunction()

# add_ckopt_passes(FOLDER): FOLDER/Passes.td -> FOLDER/Passes.h.inc
function(add_ckopt_passes name)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name ${name})
  add_public_tablegen_target(Ckopt${name}PassIncGen)
  add_dependencies(ckopt-headers Ckopt${name}PassIncGen)
endfunction()

# The C++ library inside of the target: it runs where another version of it, or
# none, is installed. What is not used goes, since it asks for a newer C library;
# libgcc stays shared, since a static one does so, too. Sanitizers want shared
# libraries.
function(ckopt_link_statically name)
  if(NOT CKOPT_SANITIZERS)
    target_link_options(${name} PRIVATE -static-libstdc++
                        LINKER:--exclude-libs,ALL LINKER:--gc-sections)
  endif()
endfunction()

# Adds every folder below the current one that has a CMakeLists.txt.
function(add_ckopt_subdirectories)
  file(GLOB children RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS
       ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(child ${children})
    get_filename_component(folder ${child} DIRECTORY)
    if(NOT folder IN_LIST ARGN)
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()
