//===- Updates.cpp - one update of a run, and its state on disk -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Updates.h"
#include "CheckpointTensors.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Runtime/World.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/Progress.h"
#include "ckopt/Train/RunChecks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace ckopt;
using runtime::TensorRole;

/// Returns the seed of a batch that `after` others of the same update follow.
/// Batches of one update draw different dropout masks, and the last one that of
/// the run's seed.
static uint64_t microSeed(uint64_t seed, int64_t after) {
  return seed + uint64_t(after) * 0x9E3779B97F4A7C15u;
}

/// Returns the function that runs a batch which `after` others follow.
static const char *functionOf(int64_t after) {
  return after ? "accumulate" : "step";
}

llvm::Error ckopt::startBatch(Session &session, const UpdateSettings &settings,
                              int64_t number, int64_t after) {
  if (llvm::Error error = session.fill(TensorRole::Step, double(number)))
    return error;
  if (llvm::Error error =
          session.fill(TensorRole::LearningRate, settings.schedule.at(number)))
    return error;
  if (settings.accumulate > 1)
    if (llvm::Error error = setSeed(session, microSeed(settings.seed, after)))
      return error;
  if (llvm::Error error = session.run(functionOf(after)))
    return session.ranks().areSeveral() // withRank() names the step
               ? std::move(error)
               : withContext(std::move(error), "step " + llvm::Twine(number));
  return llvm::Error::success();
}

llvm::Expected<BatchOutcome> ckopt::runBatch(Session &session,
                                             const UpdateSettings &settings,
                                             int64_t number, int64_t after) {
  auto start = ProgressClock::now();
  if (llvm::Error error = startBatch(session, settings, number, after))
    return std::move(error);
  auto loss = readLoss(session, functionOf(after));
  if (!loss)
    return loss.takeError();
  return BatchOutcome{*loss, secondsSince(start)}; // a device worked until then
}

llvm::Error ckopt::clearGradientSums(Session &session) {
  for (int64_t index : session.tensors(TensorRole::OptimizerState)) {
    const runtime::TensorInfo &info = session.infoOf(index);
    if (!llvm::StringRef(info.name).ends_with(autodiff::kGradientSumSuffix))
      continue;
    if (llvm::Error error =
            session.write(index, HostTensor(info.dtype, info.shape)))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::optional<LossScale>>
ckopt::readLossScale(const Session &session) {
  auto number = [&](llvm::StringRef name) -> llvm::Expected<double> {
    for (int64_t index : session.tensors(TensorRole::OptimizerState))
      if (session.infoOf(index).name == name) {
        auto value = session.read(index);
        return value ? llvm::Expected<double>(value->getDouble(0))
                     : value.takeError();
      }
    return -1;
  };
  auto scale = number(autodiff::kLossScaleName);
  auto skipped = number(autodiff::kSkippedUpdatesName);
  if (!scale || !skipped)
    return llvm::joinErrors(scale.takeError(), skipped.takeError());
  if (*scale < 0 || *skipped < 0)
    return std::nullopt;
  return LossScale{*scale, int64_t(*skipped)};
}

std::string LossScale::text() const {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", scale);
  return text;
}

llvm::Error SkipWatch::begin(const Session &session) {
  lastSkipped = false;
  skips = inRow = 0;
  return readLossScale(session).moveInto(now);
}

llvm::Error SkipWatch::update(const Session &session, int64_t number) {
  if (!now)
    return llvm::Error::success();
  LossScale before = *now;
  if (llvm::Error error = readLossScale(session).moveInto(now))
    return error;
  lastSkipped = now->skipped > before.skipped;
  skips += lastSkipped;
  inRow = lastSkipped ? inRow + 1 : 0;
  if (!lastSkipped || before.scale > 1 || now->scale == before.scale)
    return llvm::Error::success();
  return makeError(
      ExitNonFinite,
      "the gradients of step " + llvm::Twine(number) +
          " are not finite at a loss scale of " + before.text() +
          ", and no smaller one will help: values overflow f16 (65504) before "
          "they are scaled, or the loss is not finite; give " +
          Setting("keep-f32", "REGEX") + " for the nodes that make them, " +
          Setting("precision", "bf16") + ", or a lower " + Setting("lr") +
          "; " + Setting("check-finite") + " finds the first op that made one");
}

std::string SkipWatch::describe() const {
  return std::to_string(kStuck) +
         " updates in a row were skipped: their gradients overflow f16; the "
         "loss scale is now " +
         now->text();
}

MessageText SkipWatch::describeUseless(int64_t updates) const {
  return "ALL " + std::to_string(updates) +
         " updates were skipped, and nothing was trained: gradients were not "
         "finite at any loss scale that was tried (now " +
         now->text() + "); train for more steps, give a smaller " +
         Setting("loss-scale-init") + " (or " + Setting("loss-scale") +
         "), or " + Setting("precision", "bf16");
}

bool ckopt::mayRunOn(const Session &session, const SkipWatch &skips) {
  return session.manifest().target == runtime::Target::Cuda &&
         !session.ranks().areSeveral() && !skips.state() &&
         !hasGradientNorm(session);
}

llvm::Error ckopt::checkUpdate(const Session &session, double loss,
                               int64_t number, bool skipped) {
  if (!skipped)
    if (llvm::Error error = checkFinite(loss, "loss", number))
      return error;
  if (!skipped)
    if (llvm::Error error = checkGradientNorm(session, number))
      return error;
  return number % kStateCheckEvery == 0 ? checkState(session, number)
                                        : llvm::Error::success();
}

namespace {
/// What a checkpoint has of a session of one process.
class StateParts : public TensorParts {
public:
  explicit StateParts(const Session &session)
      : session(session), indices(session.changedTensors()),
        list(session.specs(indices)) {}
  llvm::ArrayRef<TensorSpec> specs() const override { return list; }
  llvm::Expected<HostTensor> read(size_t number, int64_t begin,
                                  int64_t count) override {
    return session.readPart(indices[number], begin, count);
  }

private:
  const Session &session;
  std::vector<int64_t> indices;
  std::vector<TensorSpec> list;
};
} // namespace

/// Returns a hash of what libraries run on the device, and by which algorithm;
/// empty where they run nothing.
static std::string hashLibraries(const Session &session) {
  if (session.manifest().target != runtime::Target::Cuda)
    return "";
  std::string choices;
  auto note = [](void *user, int64_t primitive, int byLibrary,
                 const char *what) {
    llvm::raw_string_ostream(*static_cast<std::string *>(user))
        << primitive << ' ' << (byLibrary ? what : "own") << '\n';
  };
  if (ckrt_library_choices(session.handle(), note, &choices) != CKRT_OK)
    return "";
  return choices.empty() ? "" : llvm::utohexstr(llvm::xxh3_64bits(choices));
}

llvm::Error ckopt::saveRun(llvm::StringRef path, const Session &session,
                           TrainingState state) {
  if (session.ranks().areSeveral())
    return saveByRanks(path, session, state);
  if (llvm::Error error = checkState(session, state.step))
    return error;
  if (std::string libraries = hashLibraries(session); !libraries.empty())
    state.options[librariesKey] = libraries;
  if (llvm::Error error = describeFrozen(session).moveInto(state.frozen))
    return error;
  StateParts tensors(session);
  return writeCheckpoint(path, tensors, state);
}

/// Refuses to resume if the schedule ends at another step, because its rates
/// differ.
static llvm::Error checkHorizon(llvm::StringRef path, std::string was,
                                std::string is,
                                const LearningRateSchedule &schedule) {
  if (was == is)
    return llvm::Error::success();
  std::string unit = schedule.byEpoch ? "epoch " : "step ";
  return inputError(path + ": its learning-rate schedule ends at " + unit +
                    was + ", this run's at " + unit + is +
                    (schedule.totalSteps
                         ? "; give " + Setting("total-steps", was)
                         : "; give the " + Setting("epochs") +
                               " that it was started with (and " +
                               Setting("max-steps") + " to stop earlier)"));
}

/// Returns the options that must be equal; what is gone has checks of its own.
static StringMetadata settled(StringMetadata options) {
  options.erase(horizonKey);
  options.erase(librariesKey);
  return options;
}

/// The user cannot choose for libraries, so the run goes on.
static void checkLibraries(llvm::StringRef path, const StringMetadata &saved,
                           const Session &session,
                           llvm::function_ref<void(MessageText)> warn) {
  auto was = saved.find(librariesKey);
  if (was == saved.end() || session.ranks().areSeveral() ||
      was->second == hashLibraries(session))
    return;
  warn(path +
       ": cuBLASLt and cuDNN run other calls here, or by other algorithms, "
       "than where it was written: the run goes on with other bits than an "
       "unbroken one (" +
       Setting("cuda-libs", "none") + " from the start depends on none)");
}

llvm::Error ckopt::restoreRun(llvm::StringRef path, Session &session,
                              const OpenCheckpoint &checkpoint,
                              const StringMetadata &options,
                              const LearningRateSchedule &schedule,
                              llvm::function_ref<void(MessageText)> warn) {
  const StringMetadata &saved = checkpoint.state.options;
  if (llvm::Error error = checkOptions(settled(saved), settled(options), path))
    return error;
  auto endIn = [](const StringMetadata &known) -> std::string {
    auto found = known.find(horizonKey);
    return found == known.end() ? "no known one" : found->second;
  };
  if (llvm::Error error =
          checkHorizon(path, endIn(saved), endIn(options), schedule))
    return error;
  checkLibraries(path, saved, session, warn);
  auto otherBase = restoreTensors(session, checkpoint, path);
  if (!otherBase)
    return otherBase.takeError();
  if (!otherBase->empty())
    warn(path +
         ": an earlier ckopt wrote it, with frozen weights, which are "
         "loaded: '" +
         *otherBase +
         "' has other values than the model's. Checkpoints hold them no more: "
         "give " +
         Setting("weights", path.str()) + " to go on from the next ones, too");
  return llvm::Error::success();
}
