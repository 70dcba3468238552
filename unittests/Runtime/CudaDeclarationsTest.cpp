//===- CudaDeclarationsTest.cpp - our declarations against cuda.h ---------===//
//
// Compiled where a CUDA toolkit is installed: what we call by name has the
// parameters that the driver's own header gives it. Opaque handles have other
// names there, so types are compared by what a call passes: integers by size
// and sign, pointers as pointers.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/cuda/Driver.h"

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

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
#include "../../lib/Runtime/cuda/DriverEntries.def"
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
  EXPECT_EQ(int(ours::kUnknown), int(CUDA_ERROR_UNKNOWN));
  EXPECT_EQ(int(ours::kMultiprocessorCount),
            int(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  EXPECT_EQ(int(ours::kComputeCapabilityMajor),
            int(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  EXPECT_EQ(int(ours::kComputeCapabilityMinor),
            int(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  EXPECT_EQ(int(ours::kMaxThreadsPerBlock),
            int(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  EXPECT_EQ(int(ours::kSharedSizeBytes),
            int(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  EXPECT_EQ(int(ours::kLocalSizeBytes),
            int(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  EXPECT_EQ(int(ours::kNumRegs), int(CU_FUNC_ATTRIBUTE_NUM_REGS));
  EXPECT_EQ(int(ours::kErrorLogBuffer), int(CU_JIT_ERROR_LOG_BUFFER));
  EXPECT_EQ(int(ours::kErrorLogBufferSizeBytes),
            int(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES));
  EXPECT_EQ(int(ours::kEventDisableTiming), int(CU_EVENT_DISABLE_TIMING));
  EXPECT_EQ(int(ours::kStreamNonBlocking), int(CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(int(ours::kCaptureModeThreadLocal),
            int(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}
