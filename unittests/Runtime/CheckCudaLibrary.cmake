# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What libckopt_cuda and ckopt-run need of the machine that they run on: the C
# library, no newer than GLIBC_2.34 (2021), libgcc_s, and nothing else.
# docs/cuda.md says so. Variables: FILES, OBJDUMP.
set(newest 2.34)
foreach(file ${FILES})
  execute_process(COMMAND ${OBJDUMP} -p ${file} OUTPUT_VARIABLE headers
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "NEEDED +[^\n]+" needed "${headers}")
  if(NOT needed)
    message(FATAL_ERROR "${file}: no libraries found in\n${headers}")
  endif()
  foreach(line ${needed})
    string(REGEX REPLACE "NEEDED +" "" library "${line}")
    if(NOT library MATCHES "^(libc|libm|libdl|libpthread|libgcc_s)\\.so\\.[0-9]+$|^ld-linux-")
      message(FATAL_ERROR "${file} needs ${library}")
    endif()
  endforeach()
  string(REGEX MATCHALL "GLIBC_[0-9.]+" versions "${headers}")
  foreach(version ${versions})
    string(REPLACE "GLIBC_" "" version ${version})
    if(version VERSION_GREATER newest)
      message(FATAL_ERROR "${file} needs GLIBC_${version}, newer than ${newest}")
    endif()
  endforeach()
  if(headers MATCHES "GLIBCXX|CXXABI")
    message(FATAL_ERROR "${file} needs a shared C++ library")
  endif()
endforeach()
