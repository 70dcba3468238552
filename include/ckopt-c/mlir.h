/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* mlir.h - ckopt's dialects and passes for users of MLIR's C API
 *
 *   MlirDialectRegistry registry = mlirDialectRegistryCreate();
 *   ckopt_register_dialects(registry);
 *   ckopt_register_passes();
 *   MlirContext context = mlirContextCreateWithRegistry(registry, false);
 *
 * The program and libckopt.so must share one MLIR, libMLIR.so of the version
 * that ckopt was built with: two copies in a process have different type ids.
 * MLIR's C API itself comes in static libraries on Debian (libMLIRCAPIIR.a), of
 * which a program links the archives alone, and libMLIR.so for what they need
 * (examples/mlir-c-client).
 */
#ifndef CKOPT_C_MLIR_H
#define CKOPT_C_MLIR_H

#include "ckopt-c/ckopt.h"

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds ckopt's dialects, and those that its passes make ops of, to a registry.
 * The registry stays the caller's; one thread at a time may change it. */
CKOPT_API ckopt_status ckopt_register_dialects(MlirDialectRegistry registry);
/* Registers ckopt's passes by the names that ckopt-opt has, for
 * mlirParsePassPipeline and the like. Any thread may call it, any number of
 * times; the first call must not run beside other registrations of passes. */
CKOPT_API ckopt_status ckopt_register_passes(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CKOPT_C_MLIR_H */
