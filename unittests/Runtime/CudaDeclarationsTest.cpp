//===- CudaDeclarationsTest.cpp - our declarations against cuda.h ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled where a CUDA toolkit is installed: the functions that the runtime
// calls by name must have the parameters of the driver's own header. Opaque
// handles have other names there, so types are compared by how a call passes
// them: integers by size and sign, pointers as pointers.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Cuda/BlasLt.h"
#include "../../lib/Runtime/Cuda/Cudnn.h"
#include "../../lib/Runtime/Cuda/Driver.h"
#include "../../lib/Runtime/Cuda/Nccl.h"

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#undef __CUDA_API_VERSION_INTERNAL
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define CKOPT_HAS_CUBLASLT
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#if CUDNN_MAJOR == 9
#define CKOPT_HAS_CUDNN
#endif
#endif

#if __has_include(<nccl.h>)
#include <nccl.h>
#define CKOPT_HAS_NCCL
#endif

#include <gtest/gtest.h>

#include <type_traits>

namespace ours = ckopt::runtime::cuda;

namespace {

template <typename A, typename B> constexpr bool passesAlike() {
  if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>)
    return std::is_pointer_v<A> && std::is_pointer_v<B>;
  else
    return sizeof(A) == sizeof(B) &&
           std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}

template <typename A, typename B> struct Alike : std::false_type {};
template <typename A, typename... As, typename B, typename... Bs>
struct Alike<A (*)(As...), B (*)(Bs...)> {
  static constexpr bool compare() {
    if constexpr (sizeof...(As) == sizeof...(Bs))
      return passesAlike<A, B>() && (passesAlike<As, Bs>() && ...);
    else
      return false;
  }
  static constexpr bool value = compare();
};

} // namespace

TEST(CudaDeclarations, FunctionsTakeWhatTheHeaderSays) {
#define CKOPT_ENTRY(member, symbol, parameters)                                \
  EXPECT_TRUE(                                                                 \
      (Alike<decltype(ours::Driver::member), decltype(&symbol)>::value))       \
      << #symbol;
#include "../../lib/Runtime/Cuda/DriverEntries.def"
#undef CKOPT_ENTRY
}

TEST(CudaDeclarations, NumbersAreTheHeaders) {
  EXPECT_EQ(int(ours::kOutOfMemory), int(CUDA_ERROR_OUT_OF_MEMORY));
  EXPECT_EQ(int(ours::kDeinitialized), int(CUDA_ERROR_DEINITIALIZED));
  EXPECT_EQ(int(ours::kStubLibrary), int(CUDA_ERROR_STUB_LIBRARY));
  EXPECT_EQ(int(ours::kDeviceUnavailable), int(CUDA_ERROR_DEVICE_UNAVAILABLE));
  EXPECT_EQ(int(ours::kNoDevice), int(CUDA_ERROR_NO_DEVICE));
  EXPECT_EQ(int(ours::kInvalidDevice), int(CUDA_ERROR_INVALID_DEVICE));
  EXPECT_EQ(int(ours::kInvalidImage), int(CUDA_ERROR_INVALID_IMAGE));
  EXPECT_EQ(int(ours::kNoBinaryForGpu), int(CUDA_ERROR_NO_BINARY_FOR_GPU));
  EXPECT_EQ(int(ours::kEccUncorrectable), int(CUDA_ERROR_ECC_UNCORRECTABLE));
  EXPECT_EQ(int(ours::kInvalidPtx), int(CUDA_ERROR_INVALID_PTX));
  EXPECT_EQ(int(ours::kNvlinkUncorrectable),
            int(CUDA_ERROR_NVLINK_UNCORRECTABLE));
  EXPECT_EQ(int(ours::kJitCompilerNotFound),
            int(CUDA_ERROR_JIT_COMPILER_NOT_FOUND));
  EXPECT_EQ(int(ours::kJitCompilationDisabled),
            int(CUDA_ERROR_JIT_COMPILATION_DISABLED));
  EXPECT_EQ(int(ours::kUnsupportedPtxVersion),
            int(CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
  EXPECT_EQ(int(ours::kNotFound), int(CUDA_ERROR_NOT_FOUND));
  EXPECT_EQ(int(ours::kIllegalAddress), int(CUDA_ERROR_ILLEGAL_ADDRESS));
  EXPECT_EQ(int(ours::kLaunchOutOfResources),
            int(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
  EXPECT_EQ(int(ours::kLaunchTimeout), int(CUDA_ERROR_LAUNCH_TIMEOUT));
  EXPECT_EQ(int(ours::kContextIsDestroyed),
            int(CUDA_ERROR_CONTEXT_IS_DESTROYED));
  EXPECT_EQ(int(ours::kAssert), int(CUDA_ERROR_ASSERT));
  EXPECT_EQ(int(ours::kHardwareStackError),
            int(CUDA_ERROR_HARDWARE_STACK_ERROR));
  EXPECT_EQ(int(ours::kLaunchFailed), int(CUDA_ERROR_LAUNCH_FAILED));
  EXPECT_EQ(int(ours::kSystemNotReady), int(CUDA_ERROR_SYSTEM_NOT_READY));
  EXPECT_EQ(int(ours::kSystemDriverMismatch),
            int(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH));
  EXPECT_EQ(int(ours::kInvalidValue), int(CUDA_ERROR_INVALID_VALUE));
  EXPECT_EQ(int(ours::kNotReady), int(CUDA_ERROR_NOT_READY));
  EXPECT_EQ(int(ours::kUnknown), int(CUDA_ERROR_UNKNOWN));
  EXPECT_EQ(int(ours::kMultiprocessorCount),
            int(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  EXPECT_EQ(int(ours::kComputeCapabilityMajor),
            int(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  EXPECT_EQ(int(ours::kComputeCapabilityMinor),
            int(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  EXPECT_EQ(int(ours::kPointerDeviceOrdinal),
            int(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL));
  EXPECT_EQ(int(ours::kPointerRangeStart),
            int(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR));
  EXPECT_EQ(int(ours::kPointerRangeSize), int(CU_POINTER_ATTRIBUTE_RANGE_SIZE));
  EXPECT_EQ(int(ours::kPointerIsLegacy),
            int(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE));
  EXPECT_EQ(int(ours::kMaxThreadsPerBlock),
            int(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  EXPECT_EQ(int(ours::kSharedSizeBytes),
            int(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  EXPECT_EQ(int(ours::kLocalSizeBytes),
            int(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  EXPECT_EQ(int(ours::kMaxDynamicSharedBytes),
            int(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  EXPECT_EQ(int(ours::kNumRegs), int(CU_FUNC_ATTRIBUTE_NUM_REGS));
  EXPECT_EQ(int(ours::kInputPtx), int(CU_JIT_INPUT_PTX));
  EXPECT_EQ(int(ours::kErrorLogBuffer), int(CU_JIT_ERROR_LOG_BUFFER));
  EXPECT_EQ(int(ours::kErrorLogBufferSizeBytes),
            int(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES));
  EXPECT_EQ(int(ours::kEventDisableTiming), int(CU_EVENT_DISABLE_TIMING));
  EXPECT_EQ(int(ours::kStreamNonBlocking), int(CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(int(ours::kCaptureModeRelaxed),
            int(CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(int(ours::kProgrammaticSerialization),
            int(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
}

TEST(CudaDeclarations, LaunchesAreTheHeaders) {
  using Config = CUlaunchConfig;
  using Attribute = CUlaunchAttribute;
  EXPECT_EQ(sizeof(ours::LaunchConfig), sizeof(Config));
  EXPECT_EQ(offsetof(ours::LaunchConfig, grid), offsetof(Config, gridDimX));
  EXPECT_EQ(offsetof(ours::LaunchConfig, block), offsetof(Config, blockDimX));
  EXPECT_EQ(offsetof(ours::LaunchConfig, sharedBytes),
            offsetof(Config, sharedMemBytes));
  EXPECT_EQ(offsetof(ours::LaunchConfig, stream), offsetof(Config, hStream));
  EXPECT_EQ(offsetof(ours::LaunchConfig, attributes), offsetof(Config, attrs));
  EXPECT_EQ(offsetof(ours::LaunchConfig, attributeCount),
            offsetof(Config, numAttrs));
  EXPECT_EQ(sizeof(ours::LaunchAttribute), sizeof(Attribute));
  EXPECT_EQ(alignof(ours::LaunchAttribute) <= alignof(Attribute), true);
  EXPECT_EQ(offsetof(ours::LaunchAttribute, id), offsetof(Attribute, id));
  // The value is a union, all of whose members are at its start.
  EXPECT_EQ(offsetof(ours::LaunchAttribute, value), offsetof(Attribute, value));
  EXPECT_EQ(
      sizeof(ours::LaunchAttribute::value),
      sizeof(CUlaunchAttributeValue::programmaticStreamSerializationAllowed));
}

#ifdef CKOPT_HAS_CUBLASLT
TEST(CudaDeclarations, BlasLtIsTheHeaders) {
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  EXPECT_TRUE(                                                                 \
      (Alike<decltype(ours::LtEntries::member), decltype(&symbol)>::value))    \
      << #symbol;
#include "../../lib/Runtime/Cuda/BlasLtEntries.def"
#undef CKOPT_ENTRY
  using Theirs = cublasLtMatmulHeuristicResult_t;
  EXPECT_EQ(sizeof(ours::LtAlgorithm), sizeof(cublasLtMatmulAlgo_t));
  EXPECT_EQ(sizeof(ours::LtResult), sizeof(Theirs));
  EXPECT_EQ(offsetof(ours::LtResult, workspace),
            offsetof(Theirs, workspaceSize));
  EXPECT_EQ(offsetof(ours::LtResult, state), offsetof(Theirs, state));
  EXPECT_EQ(int(ours::kLtTypeF32), int(CUDA_R_32F));
  EXPECT_EQ(int(ours::kLtTypeF64), int(CUDA_R_64F));
  EXPECT_EQ(int(ours::kLtTypeF16), int(CUDA_R_16F));
  EXPECT_EQ(int(ours::kLtTypeBF16), int(CUDA_R_16BF));
  EXPECT_EQ(int(ours::kLtComputeF32), int(CUBLAS_COMPUTE_32F));
  EXPECT_EQ(int(ours::kLtComputeF64), int(CUBLAS_COMPUTE_64F));
  EXPECT_EQ(int(ours::kLtComputeFastF16), int(CUBLAS_COMPUTE_32F_FAST_16F));
  EXPECT_EQ(int(ours::kLtComputeFastBF16), int(CUBLAS_COMPUTE_32F_FAST_16BF));
  EXPECT_EQ(int(ours::kLtComputeFastTF32), int(CUBLAS_COMPUTE_32F_FAST_TF32));
  EXPECT_EQ(int(ours::kLtDescTransA), int(CUBLASLT_MATMUL_DESC_TRANSA));
  EXPECT_EQ(int(ours::kLtDescTransB), int(CUBLASLT_MATMUL_DESC_TRANSB));
  EXPECT_EQ(int(ours::kLtDescEpilogue), int(CUBLASLT_MATMUL_DESC_EPILOGUE));
  EXPECT_EQ(int(ours::kLtDescBiasPointer),
            int(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
  EXPECT_EQ(int(ours::kLtEpilogueBias), int(CUBLASLT_EPILOGUE_BIAS));
  EXPECT_EQ(int(ours::kLtLayoutBatchCount),
            int(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
  EXPECT_EQ(int(ours::kLtLayoutBatchOffset),
            int(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
  EXPECT_EQ(int(ours::kLtPrefMaxWorkspace),
            int(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
  EXPECT_EQ(int(ours::kLtPrefReductionMask),
            int(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK));
  EXPECT_EQ(int(ours::kLtPrefMinAlignmentA),
            int(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES));
  EXPECT_EQ(int(ours::kLtPrefMinAlignmentA) + 3,
            int(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
  EXPECT_EQ(int(ours::kLtReductionComputeType),
            int(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
}
#endif

#ifdef CKOPT_HAS_CUDNN
TEST(CudaDeclarations, CudnnIsTheHeaders) {
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  EXPECT_TRUE(                                                                 \
      (Alike<decltype(ours::DnnEntries::member), decltype(&symbol)>::value))   \
      << #symbol;
#include "../../lib/Runtime/Cuda/CudnnEntries.def"
#undef CKOPT_ENTRY
#define CKOPT_DNN_NUMBER(name, symbol, number)                                 \
  EXPECT_EQ(int(ours::name), int(symbol)) << #symbol;
#include "../../lib/Runtime/Cuda/CudnnNumbers.def"
#undef CKOPT_DNN_NUMBER
}
#endif

#ifdef CKOPT_HAS_NCCL
TEST(CudaDeclarations, NcclIsTheHeaders) {
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  EXPECT_TRUE(                                                                 \
      (Alike<decltype(ours::NcclEntries::member), decltype(&symbol)>::value))  \
      << #symbol;
#include "../../lib/Runtime/Cuda/NcclEntries.def"
#undef CKOPT_ENTRY
  EXPECT_EQ(sizeof(ours::NcclId), sizeof(ncclUniqueId));
  EXPECT_EQ(int(ours::kNcclSuccess), int(ncclSuccess));
  EXPECT_EQ(int(ours::kNcclRemoteError), int(ncclRemoteError));
  EXPECT_EQ(int(ours::kNcclInProgress), int(ncclInProgress));
  EXPECT_EQ(int(ours::kNcclByte), int(ncclInt8));
}
#endif
