//===- RunChecks.cpp - whether a training run goes wrong ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds numbers that are not finite. A loss is checked after each step, on a
// device while the next one runs. Weights and optimizer states are looked at
// every so many steps, where they lie, and before they are written anywhere: a
// weight that is not finite mostly shows in the next loss, but not if nothing
// reads it, and an infinite second moment stops a weight without a trace.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/RunChecks.h"
#include "ckopt/Runtime/LastFailure.h"
#include "ckopt/Runtime/StatusExit.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Support/TensorParts.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cmath>

using namespace ckopt;

llvm::Error ckopt::checkRunFiles(const TrainOptions &options) {
  namespace fs = llvm::sys::fs;
  llvm::Error errors = llvm::Error::success();
  auto refuse = [&](const Setting &flag, const std::string &path,
                    const char *why) {
    errors = joinErrors(std::move(errors), ioError("cannot write '" + path +
                                                   "': " + flag + " " + why));
  };
  fs::file_status status;
  for (auto [flag, path] :
       {std::pair(Setting("checkpoint"), &options.checkpoint),
        {Setting("keep-best"), &options.keepBest}})
    if (!path->empty() && !fs::status(*path, status) &&
        !fs::is_regular_file(status) && !fs::is_directory(status))
      refuse(flag, *path,
             "replaces its file again and again, and this is a pipe or a "
             "device; give the name of a file");
  if (llvm::sys::path::extension(options.checkpoint) == ".onnx")
    refuse(Setting("checkpoint"), options.checkpoint,
           "holds optimizer state, too, which a model has no place for; give a "
           "name that ends in .safetensors");
  // A pipe without a name (/dev/stdout) has somebody at its other end.
  llvm::SmallString<128> real;
  if (!options.log.empty() && !fs::status(options.log, status) &&
      status.type() == fs::file_type::fifo_file &&
      !fs::real_path(options.log, real))
    refuse(Setting("log"), options.log,
           "does not write to a named pipe, which waits for a reader; give "
           "the name of a file");
  return errors;
}

/// Returns the index of the first element that is not finite, or -1.
static int64_t firstNonFinite(const HostTensor &tensor) {
  return dispatchDType(tensor.dtype(), [&](auto zero) -> int64_t {
    using T = decltype(zero);
    if constexpr (!std::is_integral_v<T>) {
      llvm::ArrayRef<T> values = tensor.data<T>();
      for (size_t i = 0; i < values.size(); ++i)
        if (!std::isfinite(double(values[i])))
          return int64_t(i);
    }
    return -1;
  });
}

static std::string describe(double value) {
  return std::isnan(value) ? "NaN" : value > 0 ? "infinite" : "-infinite";
}

/// What a user can do about it. The loss of a run's first step comes before
/// any update, so that no rate of learning can be at fault.
static MessageText advice(bool beforeUpdates) {
  return "; nothing was written. " +
         (beforeUpdates
              ? "No update came before it: the data, the model's values or the "
                "loss make it (a mean over labels that are all ignored is NaN; "
                "bce wants outputs between 0 and 1, bce_logits takes any); "
              : "Lower " + Setting("lr") + ", give " + Setting("clip-norm") +
                    " or " + Setting("warmup-steps") + "; ") +
         Setting("check-finite") +
         " finds the first op that made a value that is not finite";
}

static llvm::Error notFinite(const std::string &name, int64_t at,
                             llvm::ArrayRef<int64_t> shape, double value,
                             int64_t step) {
  return makeError(ExitNonFinite, "after step " + llvm::Twine(step) + " '" +
                                      name + "' " + indexString(at, shape) +
                                      " is " + describe(value) + advice(false));
}

llvm::Error ckopt::checkFinite(double value, const llvm::Twine &what,
                               int64_t step) {
  if (std::isfinite(value))
    return llvm::Error::success();
  return makeError(ExitNonFinite, "the " + what + " of step " +
                                      llvm::Twine(step) + " is " +
                                      describe(value) + advice(step <= 1));
}

llvm::Error ckopt::checkGradients(const TensorMap &gradients,
                                  Precision precision,
                                  const llvm::Twine &where) {
  for (const auto &[name, value] : gradients)
    if (firstNonFinite(value) >= 0)
      return makeError(
          ExitNonFinite,
          "'" + name + "' is not finite" + where +
              (precision == Precision::F16
                   ? "; a smaller " + Setting("loss-scale") + " may help"
                   : ""));
  return llvm::Error::success();
}

/// Result of a step that clips (lib/Transforms/Optimizers/Optimizer.cpp).
static constexpr llvm::StringLiteral kGradientNormName = "gradient_norm";

static std::optional<int64_t> gradientNormOf(const Session &session) {
  for (const runtime::FunctionInfo &info : session.manifest().functions)
    for (int32_t index : info.outputs)
      if (info.name == "step" &&
          session.infoOf(index).name == kGradientNormName)
        return index;
  return std::nullopt;
}

bool ckopt::hasGradientNorm(const Session &session) {
  return gradientNormOf(session).has_value();
}

llvm::Error ckopt::checkGradientNorm(const Session &session, int64_t step) {
  auto index = gradientNormOf(session);
  if (!index)
    return llvm::Error::success();
  auto value = session.read(*index);
  if (!value)
    return value.takeError();
  return checkFinite(value->getDouble(0), "norm of the gradients", step);
}

/// Returns whether all of the state is finite, for all that the runtime sees,
/// which looks where the state lies.
static llvm::Expected<bool> isStateFinite(const Session &session) {
  const std::vector<int64_t> looked = session.stateTensors();
  int finite = 1;
  if (ckrt_status status = ckrt_tensors_finite(session.handle(), looked.data(),
                                               int64_t(looked.size()), &finite))
    return makeError(exitCodeOf(status), runtime::lastFailure());
  return finite != 0;
}

llvm::Error ckopt::checkState(const Session &session, int64_t step) {
  auto finite = isStateFinite(session);
  if (!finite || *finite)
    return finite.takeError();
  // Which it is takes another look, in pieces, since tensors may not fit into
  // memory once more.
  for (int64_t index : session.stateTensors()) {
    const runtime::TensorInfo &tensor = session.infoOf(index);
    if (isInteger(tensor.dtype) || tensor.dtype == DType::Bool)
      continue;
    int64_t elements = ckrt_tensor_elements(session.handle(), index);
    int64_t most = kPieceBytes / dtypeSize(tensor.dtype);
    for (int64_t begin = 0; begin < elements; begin += most) {
      auto piece =
          session.readPart(index, begin, std::min(most, elements - begin));
      if (!piece)
        return piece.takeError();
      if (int64_t at = firstNonFinite(*piece); at >= 0)
        return notFinite(tensor.name, begin + at, tensor.shape,
                         piece->getDouble(at), step);
    }
  }
  return llvm::Error::success();
}

bool DivergenceWatch::add(int64_t step, double loss) {
  constexpr double kFar = 10;
  constexpr int64_t kCertain = 5;
  if (!firstStep) {
    firstStep = step;
    first = loss;
  }
  lastStep = step;
  last = loss;
  bool isFar = loss > first + kFar * std::max(std::abs(first), 1e-3);
  above = isFar ? above + 1 : 0;
  if (above == 1)
    left = step;
  if (above != kCertain || reported)
    return false;
  return reported = true;
}

MessageText DivergenceWatch::describe() const {
  return "the loss left its start at step " + std::to_string(left) + ": " +
         formatNumber(first, 6) + " at step " + std::to_string(firstStep) +
         ", " + formatNumber(last, 6) + " at step " + std::to_string(lastStep) +
         "; training diverges: lower " + Setting("lr") + ", or give " +
         Setting("clip-norm") + " or " + Setting("warmup-steps");
}
