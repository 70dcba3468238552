// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Of tests without MLIR.
#include "Standard.h"

#include <gtest/gtest.h>
