//===- CudaBackend.h - steps on a CUDA device -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs steps on a device with three streams. The step's stream replays one
// graph for each function; the copy stream moves tensors, and that of the loss
// has nothing that the next batch would wait for. An event after each run makes
// copies wait for it, and an event after each copy makes the next run wait: the
// host may prepare the next batch while a step runs, and nothing is read too
// early. What is fed to each step has a second place in the arena, to which it
// is copied while the step before runs; at the head of its step the device
// moves it to where the step reads it. Messages between ranks have a fourth
// stream (Flights.h).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_CUDABACKEND_H
#define CKOPT_LIB_RUNTIME_CUDA_CUDABACKEND_H

#include "DevicePattern.h"
#include "FiniteCheck.h"
#include "Flights.h"
#include "Staging.h"
#include "StridedCopy.h"

#include <set>

namespace ckopt::runtime::cuda {

class CudaBackend final : public Backend, SharedDevice {
public:
  CudaBackend(ckrt_program &program, const ckrt_session_options &options);
  ~CudaBackend() override;
  ckrt_status create();

  ckrt_status open(const TensorInfo &tensor, Access access,
                   char *&bytes) override;
  ckrt_status close(const TensorInfo &tensor, Access access) override;
  ckrt_status read(const TensorInfo &tensor, int64_t begin, int64_t size,
                   const char *&bytes) override;
  ckrt_status run(size_t function, CallChecker &checker) override;
  ckrt_status synchronize() override;
  int64_t rank() const override {
    World *world = World::current();
    return world ? world->rank() : 0;
  }
  char *arena() override { return nullptr; }
  bool hasPattern() const override { return options.pattern_fill != 0; }
  ckrt_status measure(int64_t &bytes) override;
  ckrt_status refill(const std::vector<ArenaRange> &keep,
                     uint64_t seed) override;
  ckrt_status allocations(ckrt_allocation_stats &stats) override;
  std::string rankDevices() override;
  ckrt_status deviceReport(ckrt_device_report &report) override;
  ckrt_status fetch(const TensorInfo &tensor) override;
  ckrt_status fetched(const TensorInfo &tensor, const char *&bytes) override;
  ckrt_status allFinite(const std::vector<const TensorInfo *> &tensors,
                        bool &finite) override;
  ckrt_status timeLaunches(size_t function,
                           const LaunchTiming &timing) override;
  ckrt_status libraryChoices(ckrt_library_hook hook, void *user) override;

  // In CudaShared.cpp: arrays and streams of others.
  SharedDevice *shared() override { return this; }
  int32_t ordinal() const override { return options.device; }
  void *address(const TensorInfo &tensor) const override;
  ckrt_status waitFor(void *stream) override;
  ckrt_status letWait(void *stream) override;
  ckrt_status copy(const TensorInfo &tensor, const ckrt_device_array &array,
                   bool toTensor) override;
  ckrt_status readBytes(const void *from, int64_t bytes, void *stream,
                        char *to) override;
  ckrt_status isFinite(const ckrt_device_array &array, int64_t bytes,
                       bool &finite) override;

private:
  // In CudaBackend.cpp: construction, copies.
  void chooseLock();
  ckrt_status chooseDevice();
  ckrt_status makeStreams();
  ckrt_status download(char *to, int64_t offset, int64_t bytes);
  /// Copies a tensor from its slot to the device: what is fed beside the last
  /// step, all else behind it.
  ckrt_status queueCopy(const Staging::Slot &slot, const TensorInfo &tensor);
  /// Whether a tensor has a second place, where the next step's waits.
  bool isFedTwice(const TensorInfo &tensor) const;
  /// Where the tensor's newest value is, or goes.
  int64_t placeOf(const TensorInfo &tensor) const;
  /// Puts into the step's stream: what is fed waits for its copies, and goes to
  /// where the step reads it.
  Result takeFed();
  ckrt_status upload(int64_t offset, const char *from, int64_t bytes);
  /// Records a driver's failure at `what`; every later call returns it. If the
  /// device had work, the failing kernel is searched for.
  ckrt_status broken(const std::string &what, Result result);
  /// Returns the failure that broke the session.
  ckrt_status repeatFailure() const { return fail(brokenStatus, brokenText); }
  void release();

  // In CudaPattern.cpp.
  int64_t bytesBehind() const;
  ckrt_status makePattern();
  ckrt_status fillSegment(const PatternSegment &segment);
  ckrt_status checkTail(const std::string &after);
  ckrt_status highestOf(const PatternSegment &range, int64_t &high);
  ckrt_status highestWord(const PatternSegment &words, int64_t &high);
  ckrt_status highestByte(const PatternSegment &range, int64_t &high);

  // In CudaSteps.cpp: graphs, single calls, failing kernels.
  bool isOfRanks(const LaunchInfo &launch) const;
  ckrt_status runLibrariesOnce(bool ofRanks);
  ckrt_status refused(const LaunchInfo &launch, const CallInfo &call,
                      Result result);
  ckrt_status readLock();
  ckrt_status writeLock();
  ckrt_status captureAll();
  Result capture(size_t function, Graph &graph, std::string &what);
  ckrt_status replay(size_t function);
  ckrt_status runOneByOne(size_t function, CallChecker &checker);
  ckrt_status lookAtResults(size_t call, CallChecker &checker);
  std::string findFailingKernel();
  // In CudaNumbers.cpp: makes finiteCheck if there is none.
  Result needFiniteCheck();
  // In CudaShared.cpp.
  ckrt_status checkStream(Stream caller);
  ckrt_status checkArray(Stream caller, const void *data, int64_t bytes);
  int64_t bytesBehind(DevicePointer address, int64_t bytes) const;
  ckrt_status follow(Stream caller, std::initializer_list<Stream> own);
  // In CudaTimes.cpp.
  Result timeOne(const LaunchInfo &launch, const LaunchTiming &timing,
                 double &seconds);
  std::string describe(const LaunchInfo &launch, const CallInfo &call) const;

  ckrt_program &program;
  ckrt_session_options options;
  std::string lockPath;
  LockFile lock;
  std::unique_ptr<Engine> engine; ///< null once the session is broken
  std::unique_ptr<Staging> staging;
  std::unique_ptr<FiniteCheck> finiteCheck; ///< made when it is first needed
  std::unique_ptr<StridedCopy> stridedCopy; ///< likewise
  std::unique_ptr<DevicePattern> pattern;   ///< null: none was asked for
  std::unique_ptr<Flights> flights;
  Stream stepStream = nullptr, copyStream = nullptr, lossStream = nullptr;
  Event stepDone = nullptr, copyDone = nullptr, lossRead = nullptr;
  Event fedTaken = nullptr; ///< the second places may be written again
  bool fedWaits = false;    ///< the second places have newer values
  Event handover = nullptr; ///< in a stream of the caller's; made when needed
  /// By function; null if it has nothing to launch.
  std::vector<GraphExec> graphs;
  std::vector<char> bounce; ///< pageable copy of the open tensor
  std::vector<char> shadow; ///< results that a check reads
  std::vector<PatternSegment> segments;
  std::set<size_t> tailSeen; ///< functions behind whose first run it was read
  int64_t peak = 0;
  /// The function that was last launched, for messages; -1 for none.
  int64_t lastFunction = -1;
  ckrt_status brokenStatus = CKRT_OK;
  MessageText brokenText;
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_CUDABACKEND_H
