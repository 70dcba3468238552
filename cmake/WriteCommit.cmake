# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Writes OUTPUT, a source file that defines ckopt::kCommit as what `git describe`
# says of SOURCE, or as "" where SOURCE is no git checkout (an archive of the
# source). The file keeps its date where nothing changed, so that a build links
# again after a commit alone. Variables: GIT, SOURCE, OUTPUT.
cmake_minimum_required(VERSION 3.25)
set(commit "")
if(GIT)
  # Empty at the top of a checkout; an archive may lie inside of another one.
  execute_process(COMMAND ${GIT} rev-parse --show-cdup WORKING_DIRECTORY ${SOURCE}
                  RESULT_VARIABLE status OUTPUT_VARIABLE above ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(status EQUAL 0 AND above STREQUAL "")
    execute_process(COMMAND ${GIT} describe --always --abbrev=12 --tags
                    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "namespace ckopt {\nextern const char kCommit[];\nconst char kCommit[] = \"@commit@\";\n}\n" @ONLY)
