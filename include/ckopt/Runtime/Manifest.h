//===- Manifest.h - the description of a compiled step ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiled step is machine code plus this manifest: where each named tensor
// lies in the arena, which library primitives the code calls, how many threads
// and which CPU features it was compiled for. For a device the code has only
// kernels, and the manifest describes the step: each call lists its launches
// with their places in the arena. The compiler fills the structs and serializes
// them; the runtime parses the blob and trusts nothing in it.
//
// The blob is a flat sequence of little-endian fields behind a magic, a version
// and a checksum; no pointers, no padding. parse() checks every length, every
// offset and every enumerator, so that garbage gives an error text, never a
// crash. Time and space are linear in the blob.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_MANIFEST_H
#define CKOPT_RUNTIME_MANIFEST_H

#include "ckopt/Base/IntegerLimits.h"
#include "ckopt/Base/Shards.h"
#include "ckopt/Base/SizePolynomial.h"
#include "ckopt/Runtime/Export.h"
#include "ckopt/Runtime/Primitive.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ckopt::runtime {

/// Version of the blob and of the calls between generated code and runtime.
inline constexpr uint32_t kAbiVersion = 18;

/// The kind of machine that the code runs on.
enum class Target : uint32_t { Cpu = 0, Cuda };
inline constexpr uint32_t kNumTargets = 2;
/// Returns "cpu" or "cuda".
CKRT_EXPORT std::string_view targetName(Target target);

/// Alignment in bytes of a device's arena and of its start; the CPU's is 64.
inline constexpr int64_t kDeviceAlignment = 256;

/// The role of a named tensor.
enum class TensorRole : uint32_t {
  Parameter = 0,  ///< trained
  Frozen,         ///< a weight that no update touches
  State,          ///< running statistics
  OptimizerState, ///< momenta and the like
  Input,
  Target,
  Constant, ///< large constants; their bytes are written by the loader
  Seed,
  Step, ///< number of the training step, counted from 1
  LearningRate,
  Loss,
  Output,
  Gradient,
  Copy, ///< a weight in 16 bits, which `refresh` makes and updates write
};
inline constexpr uint32_t kNumTensorRoles = 14;

/// Returns "parameter", "optimizer_state", ... as in the IR's `ckopt.role`.
CKRT_EXPORT std::string_view roleName(TensorRole role);
/// Inverse of roleName; false if the name is unknown.
CKRT_EXPORT bool parseRole(std::string_view name, TensorRole &role);

/// Valid values of targets other than labels. Only hosts that read samples
/// check them: a step takes other numbers as they are.
enum class TargetValues : uint32_t {
  Any = 0,
  Signs,                ///< -1 or 1
  Probabilities,        ///< from 0 to 1; other values are errors
  UsuallyProbabilities, ///< from 0 to 1; other values give a warning
};
inline constexpr uint32_t kNumTargetValues = 4;

/// A named tensor at a fixed place of the arena.
struct TensorInfo {
  std::string name;
  TensorRole role = TensorRole::Input;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;   ///< logical shape; empty for a scalar
  std::vector<int64_t> strides; ///< in elements, one a logical dimension
  int64_t offset = 0;           ///< bytes from the arena's start
  int64_t bytes = 0;            ///< bytes from its first to its last element
  std::string init; ///< "", "zeros", "ones", "kaiming", "xavier", "normal"
  int64_t fanIn = 0;
  int64_t fanOut = 0;
  /// Offset of its initial bytes (dataBytes() of them, in the tensor's own
  /// order) in the artifact's data (symbol ckopt_data); -1: the user writes
  /// them.
  int64_t dataOffset = -1;
  /// If several: the tensor is one rank's shard of a tensor of wholeShape,
  /// which this number of ranks share.
  int64_t shards = 1;
  std::vector<int64_t> wholeShape;
  TensorLimits limits;
  TargetValues values = TargetValues::Any;

  const std::vector<int64_t> &fullShape() const {
    return shards > 1 ? wholeShape : shape;
  }
  /// The bytes of its initial values in the artifact's data, and where those of
  /// a rank begin: shards lie one behind another.
  int64_t dataBytes() const { return bytes * shards; }
  int64_t dataOffsetOf(int64_t rank) const {
    return dataOffset + sharing().shardOf(rank) * bytes;
  }
  /// How ranks share its elements.
  Shards sharing() const {
    auto count = [](const std::vector<int64_t> &sizes) {
      int64_t elements = 1;
      for (int64_t size : sizes)
        elements *= size;
      return elements;
    };
    return {count(fullShape()), shards, count(shape)};
  }
};

/// A function of the artifact: its entry point and the tensors that it reads
/// and makes.
struct FunctionInfo {
  /// "step", "eval", "accumulate"; "refresh" makes all tensors of the role Copy
  /// from weights, and runs before others where these were written.
  std::string name;
  std::string symbol;           ///< "ckopt_fn_step"
  std::vector<int32_t> inputs;  ///< indices into Manifest::tensors
  std::vector<int32_t> outputs; ///< the same
};

/// The bytes that one result of a kernel call occupies.
struct CallResult {
  DType dtype = DType::F32;
  int64_t offset = 0; ///< bytes from the arena's start
  int64_t bytes = 0;
};

/// The requirements of a device artifact; all zero for the CPU.
struct DeviceInfo {
  int32_t sm = 0;        ///< least compute capability: 80, 90
  int32_t ptxIsa = 0;    ///< version of the PTX: 70 for 7.0, 78 for 7.8
  int32_t minDriver = 0; ///< least cuDriverGetVersion: 11000, 11080
  /// Precision of f32 matmuls and convolutions: it decides bits as the code
  /// does.
  ProductPrecision precision = ProductPrecision::F32;
  int32_t multiprocessors =
      0; ///< sums are divided among this number, which decides bits, too
  /// Each kernel waits for those before it by itself, and lets the next one
  /// begin (PtxOptions::programmatic).
  bool programmatic = false;
  /// The bytes of the arena that hold what is fed to each step, and how many
  /// bytes behind the next one's is copied to, until the step begins; 0: there
  /// is no second place.
  int64_t fedBegin = 0, fedEnd = 0, fedShift = 0;
  /// Of the files next to the manifest; writeDeviceArtifact fills these in.
  int64_t codeBytes = 0, dataBytes = 0;
  uint64_t codeHash = 0, dataHash = 0;
};

/// Returns the bytes of shared memory that a block may use, for code of a
/// compute capability. Of capabilities from 8.0 on, 8.6 and 8.9 have the least;
/// from 9.0 on some have less than this (12.0), and such code does not load
/// there.
constexpr int64_t mostSharedBytes(int32_t sm) {
  return int64_t(sm >= 90 ? 227 : 99) << 10;
}

/// An entry point of the device code. It is launched on `grid` blocks of
/// `block` threads (one dimension) with the parameters, in this order:
/// `pointers` device pointers, `scalars` i64 values, one scratch pointer.
struct KernelInfo {
  std::string symbol; ///< [A-Za-z_][A-Za-z0-9_]*
  int64_t grid = 1;   ///< 1 .. 2^31 - 1
  int64_t block = 1;  ///< 1 .. 1024
  /// Shared memory, at most mostSharedBytes(). Code cannot declare more than 48
  /// KiB; then launches request it.
  int64_t sharedBytes = 0;
  int32_t pointers = 0;
  int32_t scalars = 0;
  std::vector<std::string> sources; ///< names of ONNX nodes, for messages
};

/// The bytes of the arena that a kernel may read or write through one pointer
/// parameter.
struct LaunchPointer {
  int64_t offset = 0; ///< bytes from the arena's start; a multiple of 64
  int64_t bytes = 0;
};

/// One launch on the device: of a kernel, or of a library's primitive.
struct LaunchInfo {
  int32_t kernel = -1;    ///< index into Manifest::kernels, or -1
  int32_t primitive = -1; ///< else index into Manifest::primitives
  /// For a kernel in the order of its parameters (operands, then results), for
  /// a primitive in the order of PrimitiveKind
  std::vector<LaunchPointer> pointers;
  std::vector<int64_t> scalars;
  /// Target of the scratch pointer (its bytes: the call's workspace); any
  /// multiple of 64 inside the arena if none is needed.
  int64_t scratchOffset = 0;
};

/// One kernel call of a function, in order of execution. On the CPU the table
/// is only for messages, profiles, --check-finite and --verify-remat; on a
/// device a function is its calls' launches in order.
struct CallInfo {
  int32_t function = 0;      ///< index into Manifest::functions
  std::string kernel;        ///< symbol of the kernel
  std::string source;        ///< name of the ONNX node(s)
  int32_t primitive = -1;    ///< index into Manifest::primitives, -1: generated
  int32_t originalCall = -1; ///< for a recomputation: the call that it repeats
  int64_t workspaceOffset = 0;
  int64_t workspaceBytes = 0;
  std::vector<CallResult> results;
  std::vector<LaunchInfo> launches; ///< on a device, in order; else empty
  /// If `launches` is a library's (Manifest::libraryPrimitive): kernels of our
  /// own that do the same, in order, for devices whose library is missing or
  /// refuses the call. Empty: the artifact has none. Their scratch is the first
  /// `ownScratchBytes` of the workspace.
  std::vector<LaunchInfo> ownLaunches;
  int64_t ownScratchBytes = 0;
};

/// A dimension that the step's code leaves open: it runs at every size of a
/// range, and the manifest describes the step at one of them. What differs at
/// another is a polynomial of the size.
struct OpenSize {
  /// One of the manifest's numbers of 64 bits, which are counted in the order
  /// of the blob.
  struct Field {
    int64_t number = 0;
    SizePolynomial value;
  };
  std::string name; ///< "": the step is of one size alone
  int64_t low = 0, high = 0;
  int64_t size = 0; ///< that the manifest describes
  RowBlocks blocks;
  std::vector<Field> fields; ///< by their numbers
};

struct Manifest {
  uint32_t abiVersion = kAbiVersion;
  Target target = Target::Cpu;
  DeviceInfo device;                    ///< of target Cuda
  std::vector<std::string> cpuFeatures; ///< as LLVM or /proc/cpuinfo name them
  int32_t threads = 1; ///< exactly this number runs each step; 1 for a device
  bool keepDenormals =
      false;              ///< for f64 steps; else denormals are flushed to zero
  int64_t arenaBytes = 0; ///< the planned peak
  int64_t alignment =
      64;               ///< of the arena's start; kDeviceAlignment for a device
  std::string producer; ///< compiler and version, for messages
  /// The hash of the table that chose the forms of primitives; "": the built-in
  /// one.
  std::string libraryTable;
  std::vector<TensorInfo> tensors;
  std::vector<FunctionInfo> functions;
  std::vector<PrimitiveDesc> primitives;
  std::vector<CallInfo> calls;
  std::vector<KernelInfo> kernels; ///< of target Cuda
  OpenSize open;

  /// Returns whether the call is work of a device for the results of the next
  /// call that is no such part: a kernel's call may be several of them, each
  /// with its own choice between a library and our kernels.
  bool isPart(const CallInfo &call) const {
    return call.results.empty() && !call.launches.empty() &&
           !(call.primitive >= 0 &&
             primitives[static_cast<size_t>(call.primitive)].allReduce.started);
  }

  /// Returns the primitive that cuBLASLt or cuDNN runs for a call on a device,
  /// or -1; collectives are none.
  int32_t libraryPrimitive(const CallInfo &call) const {
    int32_t first =
        call.launches.empty() ? -1 : call.launches.front().primitive;
    return first < 0 || isOfRanks(primitives[static_cast<size_t>(first)].kind)
               ? -1
               : first;
  }
};

/// Serializes the manifest.
CKRT_EXPORT std::vector<uint8_t> serialize(const Manifest &manifest);

/// Parses and checks a blob. On failure returns false and names the wrong field
/// in \p error.
CKRT_EXPORT bool parse(const void *data, size_t size, Manifest &manifest,
                       std::string &error);

/// Returns the numbers of 64 bits that an open size may change, in the order in
/// which OpenSize counts them.
CKRT_EXPORT std::vector<int64_t *> sizeFields(Manifest &manifest);

/// Describes the step at another size of its range. False with the reason in
/// \p error: there is no range, or the size is outside of it.
CKRT_EXPORT bool resize(Manifest &manifest, int64_t size, std::string &error);

/// Returns the end of the last byte that a step may write, at its size.
CKRT_EXPORT int64_t plannedBytes(const Manifest &manifest);

/// Checks a manifest that did not come from a blob by the same rules.
CKRT_EXPORT bool validate(const Manifest &manifest, std::string &error);

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_MANIFEST_H
