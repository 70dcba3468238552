//===- DeviceHash.h - of the files of a device artifact ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CORE_DEVICEHASH_H
#define CKOPT_LIB_RUNTIME_CORE_DEVICEHASH_H

#include "ckopt/Base/ContentHash.h"

namespace ckopt::runtime {

using DeviceHash = ContentHash;

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CORE_DEVICEHASH_H
