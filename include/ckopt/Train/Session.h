//===- Session.h - a loaded step, for the host ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A session owns a loaded step of the runtime, and moves host tensors in and
// out of its arena by name and role. Errors are llvm::Error with exit codes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_SESSION_H
#define CKOPT_TRAIN_SESSION_H

#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Runtime/Manifest.h"
#include "ckopt/Runtime/ckrt.h"
#include "ckopt/Train/Data/Checkpoint.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <vector>

namespace ckopt {

struct SessionOptions {
  bool measurePeak = true; ///< fill the arena with a pattern first
  bool countAllocations = false;
  /// On the CPU these need a step that was compiled with
  /// CompileOptions::instrument; load() and open() refuse other steps.
  bool checkFinite = false;
  bool verifyRemat = false;
  bool keepValues = false; ///< verifyRemat with copies
  int32_t device = 0;      ///< device, for a step for GPUs
  Ranks ranks; ///< ranks that run it; for load() those that compiled it
  /// Lives in the arena of this session, with its weights and states
  /// (ckrt_session_options::arena_of); null: in one of its own.
  class Session *arenaOf = nullptr;
  /// The size of a dimension that the step leaves open (CompileOptions::sizes);
  /// 0: the largest.
  int64_t size = 0;
};

/// How the names of weights in a file differ from a model's: by what the model
/// has before them, or by what the file has.
struct NamePrefix {
  std::string added, dropped; ///< when the file was read
  bool empty() const { return added.empty() && dropped.empty(); }
  auto operator<=>(const NamePrefix &) const = default;
};

/// Where a session's first weights came from, as far as a folder of weights is
/// to be written like it.
struct GivenWeights {
  NamePrefix prefix;
  std::string folder;
  /// What the file calls weights that the model ties: by the model's names, to
  /// others of the model.
  std::map<std::string, std::string> tied;
};

struct UnchangedTensors {
  llvm::StringMap<uint64_t> hashes;    ///< of frozen tensors, by name
  std::vector<FrozenTensor> constants; ///< of the model's file
};

/// Indices of tensors are those of manifest().tensors. Others are usage errors;
/// infoOf() describes a tensor without name and elements then.
class Session {
public:
  /// Makes a session. The program must outlive it; `keeper`, if given, is held
  /// by the session and keeps the program alive. To `refused` are added the
  /// primitives that no library runs here and that the program has no kernel of
  /// ours for; then the session is an error.
  static llvm::Expected<std::unique_ptr<Session>>
  create(ckrt_program *program, const SessionOptions &options = {},
         std::shared_ptr<void> keeper = nullptr,
         std::vector<int64_t> *refused = nullptr);
  ~Session();
  Session(const Session &) = delete;

  const runtime::Manifest &manifest() const { return *info; }
  ckrt_session *handle() const { return session; }
  const Ranks &ranks() const { return others; }

  /// Returns the indices of all tensors with the role, in the manifest's order.
  std::vector<int64_t> tensors(runtime::TensorRole role) const;
  /// Returns the index of the tensor, or an error that lists the tensors.
  llvm::Expected<int64_t> find(llvm::StringRef name) const;
  const runtime::TensorInfo &infoOf(int64_t index) const;

  /// Tells whether this rank has only its shards of some tensors.
  bool isSharded() const;
  /// Returns the roles of tensors that a step changes or keeps.
  static llvm::ArrayRef<runtime::TensorRole> stateRoles();

  /// Writes the tensor. For a sharded tensor the value may be the shard or the
  /// whole tensor.
  llvm::Error write(int64_t index, const HostTensor &value);
  /// Returns the tensor; if ranks share it, this rank's shard.
  llvm::Expected<HostTensor> read(int64_t index) const;
  /// Returns the elements [first, first + count), in row-major order, of what
  /// read() returns, as a vector.
  llvm::Expected<HostTensor> readPart(int64_t index, int64_t first,
                                      int64_t count) const;
  /// Returns the whole tensor. If ranks share it, all of them must call this.
  llvm::Expected<HostTensor> readWhole(int64_t index) const;
  /// Sets every tensor of a role (seed, step, learning rate) to one value.
  llvm::Error fill(runtime::TensorRole role, double value);

  /// Sets weights in `values`, and initializes the others by the manifest's
  /// rules from `seed`. Optimizer state starts at zero.
  llvm::Error initialize(const TensorMap &values, uint64_t seed);
  /// Returns parameters, state and (if requested) optimizer state, whole: if
  /// ranks share them, all ranks must call this.
  llvm::Expected<TensorMap> weights(bool optimizerState) const;

  /// Writes all tensors that a step changes or keeps from `values`. One error
  /// lists those that are missing, unexpected, or of another type or shape;
  /// `what` names their file in it.
  llvm::Error restore(const TensorMap &values, llvm::StringRef what);
  /// The same from another session, whose shards must be this one's.
  llvm::Error restore(const Session &other, llvm::StringRef what);

  llvm::Error run(const char *function);
  llvm::Expected<int64_t> measuredPeak() const;

  GivenWeights given; ///< what load() was given

  /// Returns the tensors that a step changes or keeps, and their whole shapes.
  std::vector<int64_t> stateTensors() const;
  std::vector<TensorSpec> stateSpecs() const;
  std::vector<TensorSpec> specs(llvm::ArrayRef<int64_t> indices) const;
  /// Returns those of them that a step changes, which a checkpoint has.
  std::vector<int64_t> changedTensors() const;

  /// Returns what is known of what no step changes. Sessions of one arena share
  /// it; write() forgets the hash of what it writes.
  UnchangedTensors &unchanged() const { return *unchangedTensors; }

private:
  Session() = default;
  llvm::Error checkIndex(int64_t index) const;
  llvm::Error checkState(llvm::ArrayRef<TensorSpec> given,
                         llvm::StringRef what) const;

  std::shared_ptr<void> keeper;
  ckrt_session *session = nullptr;
  const runtime::Manifest *info = nullptr;
  Ranks others;
  std::shared_ptr<UnchangedTensors> unchangedTensors;
};

} // namespace ckopt

#endif // CKOPT_TRAIN_SESSION_H
