# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Links _ckopt for machines that have neither LLVM nor a linker. Its own code and
# lld's are archives; backend/ckopt_build.py puts other libraries beside the module.
find_program(CKOPT_LLD NAMES ld.lld-22 REQUIRED)
foreach(part ELF Common)
  find_library(CKOPT_LLD_${part} liblld${part}.a HINTS ${LLVM_LIBRARY_DIR})
  if(NOT CKOPT_LLD_${part})
    message(FATAL_ERROR "CKOPT_STATIC needs lld's archives (apt-get install liblld-22-dev)")
  endif()
endforeach()
# lld initializes all targets of LLVM, whose code generators would be half of the
# module, and names Polly: they are made of nothing.
set(nothing "// Targets of LLVM that this module does without.\n")
foreach(target ${LLVM_TARGETS_TO_BUILD})
  if(NOT target MATCHES "^(X86|AArch64|NVPTX)$")
    foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser)
      string(APPEND nothing "extern \"C\" void LLVMInitialize${target}${part}() {}\n")
    endforeach()
  endif()
endforeach()
file(CONFIGURE OUTPUT OtherTargets.cpp CONTENT "${nothing}")
target_sources(_ckopt PRIVATE src/Inside.cpp ${CMAKE_CURRENT_BINARY_DIR}/OtherTargets.cpp)
target_compile_definitions(_ckopt PRIVATE CKOPT_STATIC)
target_link_libraries(_ckopt PRIVATE ${CKOPT_LLD_ELF} ${CKOPT_LLD_Common} Ckopt::Llvm)
target_link_options(_ckopt PRIVATE --ld-path=${CKOPT_LLD} -static-libstdc++
  LINKER:--gc-sections)
# A process has one OpenMP: this one keeps its name, by which others find it.
find_library(CKOPT_GOMP libgomp.so.1 REQUIRED)
file(REAL_PATH ${CKOPT_GOMP} gomp)
install(FILES ${gomp} DESTINATION ckopt RENAME libgomp.so.1)
# Engines for the two MPIs, linked to neither: the runtime opens the one that is there.
foreach(mpi openmpi mpich)
  find_path(CKOPT_${mpi}_HEADERS mpi.h NO_DEFAULT_PATH PATHS
            /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/${mpi}/include
            /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/${mpi})
  if(NOT CKOPT_${mpi}_HEADERS)
    message(FATAL_ERROR "CKOPT_STATIC needs the headers of both MPIs "
            "(apt-get install libopenmpi-dev libmpich-dev)")
  endif()
  add_library(ckopt_${mpi} MODULE ../lib/Runtime/Comm/Mpi/MpiEngine.cpp)
  target_include_directories(ckopt_${mpi} PRIVATE ../lib/Runtime ${CKOPT_INCLUDE_DIRS})
  target_include_directories(ckopt_${mpi} SYSTEM PRIVATE ${CKOPT_${mpi}_HEADERS})
  target_compile_definitions(ckopt_${mpi} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_options(ckopt_${mpi} PRIVATE --ld-path=${CKOPT_LLD} -static-libstdc++
    LINKER:--exclude-libs,ALL LINKER:--gc-sections)
  set_target_properties(ckopt_${mpi} PROPERTIES SUFFIX .so.1 CXX_VISIBILITY_PRESET hidden
    CXX_EXTENSIONS OFF)
  install(TARGETS ckopt_${mpi} LIBRARY DESTINATION ckopt)
endforeach()
