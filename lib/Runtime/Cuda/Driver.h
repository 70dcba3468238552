//===- Driver.h - the CUDA driver, opened at run time -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: neither building nor installing ckopt may need any part of CUDA.
// Method: the few calls that a step needs are declared here, by the driver's
// stable interface of version 11.0 (names with their version suffix, which
// every later driver keeps), and looked up in libcuda.so.1 when the first
// session is made. Later entries are null where the driver has none. A test
// compares the declarations with cuda.h where that is installed.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_DRIVER_H
#define CKOPT_LIB_RUNTIME_CUDA_DRIVER_H

#include "ckopt/Base/MessageText.h"
#include <cstddef>
#include <cstdint>
#include <string>

namespace ckopt::runtime::cuda {

using Result = int;
using Device = int;
using DevicePointer = unsigned long long;
using Context = struct ContextOpaque *;
using Module = struct ModuleOpaque *;
using Function = struct FunctionOpaque *;
using Stream = struct StreamOpaque *;
using Event = struct EventOpaque *;
using Graph = struct GraphOpaque *;
using LinkState = struct LinkOpaque *;
using GraphExec = struct GraphExecOpaque *;

/// The results that the runtime distinguishes.
enum : Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kDeviceUnavailable = 46, // in use, and not to be shared
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kNvlinkUncorrectable = 220,
  kJitCompilerNotFound = 221,
  kUnsupportedPtxVersion = 222,
  kJitCompilationDisabled = 223,
  kContained = 226,
  kNotFound = 500,
  kNotReady = 600, // work is under way: no failure
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,
  kLaunchFailed = 719,
  kTensorMemoryLeak = 721,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kUnknown = 999,
};

enum DeviceAttribute : int {
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
};
enum PointerAttribute : int {
  kPointerDeviceOrdinal = 9,
  kPointerIsLegacy = 10, ///< CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
  kPointerRangeStart = 11,
  kPointerRangeSize = 12,
};
enum FunctionAttribute : int {
  kMaxThreadsPerBlock = 0,
  kSharedSizeBytes = 1,
  kLocalSizeBytes = 3,
  kNumRegs = 4,
  kMaxDynamicSharedBytes = 8,
};
enum JitInput : int { kInputPtx = 1 };
enum JitOption : int { kErrorLogBuffer = 5, kErrorLogBufferSizeBytes = 6 };
enum : unsigned {
  kEventDefault = 0,
  kEventDisableTiming = 2,
  kStreamNonBlocking = 1
};
enum CaptureMode : int { kCaptureModeRelaxed = 2 };
enum LaunchAttributeId : int { kProgrammaticSerialization = 6 };

/// CUlaunchAttribute, with the one value in use.
struct LaunchAttribute {
  LaunchAttributeId id;
  int pad;
  int value;
  char rest[60];
};
/// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  Stream stream;
  const LaunchAttribute *attributes;
  unsigned attributeCount;
};

/// The driver's entries. There is one table for each process, and the library
/// stays open.
struct Driver {
#define CKOPT_ENTRY(member, symbol, parameters) Result(*member) parameters;
#include "DriverEntries.def"
#undef CKOPT_ENTRY
  int version = 0; ///< cuDriverGetVersion, once initialized

  /// Opens the library (CKOPT_CUDA_DRIVER names another one), looks every entry
  /// up and initializes it. On failure returns null, sets `error`, and sets
  /// `tooOld` if a newer driver would work; the next call tries again.
  static const Driver *open(MessageText &error, bool &tooOld);

  /// Returns, for example, "an illegal memory access was encountered
  /// (CUDA_ERROR_ILLEGAL_ADDRESS)".
  std::string text(Result result) const;
};

/// Returns "12.4" for 12040.
std::string versionText(int version);

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_DRIVER_H
