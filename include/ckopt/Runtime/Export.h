//===- Export.h - marks libckopt_runtime's exported symbols -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_EXPORT_H
#define CKOPT_RUNTIME_EXPORT_H

/* The library is built with hidden visibility: only what carries this mark is
 * part of its interface. */
#define CKRT_EXPORT __attribute__((visibility("default")))

#endif // CKOPT_RUNTIME_EXPORT_H
