// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiles an ONNX model into a training step of at most so many bytes, trains
// it and writes what it learned:
//
//   train-client digits_cnn.onnx digits.npz 2MiB 20 0.001 trained.safetensors
//   train-client ... trained.safetensors run.ckpt          writes a checkpoint
//   train-client ... trained.safetensors run.ckpt resume   goes on from it
//   train-client digits_cnn.onnx own:digits.npz ...        the program's source
//
// It prints what `ckopt train` would print, gives the same bits and refuses the
// same things with the same exit codes.
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Npz.h"
#include "ckopt/Train/Data/Permutation.h"
#include "ckopt/ckopt.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

/// Samples of the program's own: arrays in memory here, but nothing else has to
/// be changed where they are made, decoded or received. The order is the one
/// that ckopt gives files, and so are the bits.
class OwnDigits : public ckopt::BatchSource {
public:
  static llvm::Expected<std::unique_ptr<OwnDigits>> read(llvm::StringRef path) {
    auto arrays = ckopt::readNpz(path);
    if (!arrays)
      return arrays.takeError();
    const ckopt::HostTensor *images = arrays->find("images"),
                            *labels = arrays->find("labels");
    if (!images || !labels)
      return ckopt::inputError(path + " holds no images and labels");
    auto result = std::make_unique<OwnDigits>();
    result->images = *images;
    result->labels = *labels;
    return result;
  }

  std::string name() const override { return "the program's digits"; }
  llvm::ArrayRef<ckopt::SourceField> fields() const override { return list; }
  std::optional<int64_t> numSamples() const override { return images.dim(0); }
  bool canSeek() const override { return true; }
  llvm::Error seek(uint64_t seed, ckopt::DataPosition place) override {
    order = ckopt::epochPermutation(images.dim(0), seed, place.epoch);
    at = size_t(place.position);
    return llvm::Error::success();
  }
  llvm::Expected<int64_t> next(int64_t count,
                               llvm::ArrayRef<void *> to) override {
    int64_t given = 0;
    for (; given < count && at < order.size(); ++given, ++at) {
      std::memcpy(static_cast<char *>(to[0]) + given * kPixels,
                  images.data<uint8_t>().data() + order[at] * kPixels, kPixels);
      static_cast<int64_t *>(to[1])[given] =
          labels.data<int64_t>()[size_t(order[at])];
    }
    return given;
  }

private:
  static constexpr int64_t kPixels = 64;
  // Pixels stay bytes; the step's f32 are made of them batch by batch.
  std::vector<ckopt::SourceField> list = {{"x", ckopt::DType::U8, {1, 8, 8}},
                                          {"target", ckopt::DType::I64, {}}};
  ckopt::HostTensor images, labels;
  std::vector<int64_t> order;
  size_t at = 0;
};

static ckopt::CompileOptions compileOptions(llvm::StringRef model) {
  ckopt::CompileOptions options;
  options.model = model.str();
  options.import.batch = 32;
  options.step.loss = *ckopt::parseLoss("cross_entropy");
  options.step.optimizer.kind = "adamw";
  options.step.threads = 2;
  options.messages = [](const ckopt::Message &message) {
    if (message.severity != ckopt::Message::Severity::Remark)
      llvm::errs() << "train-client: " << message.str().inShell() << "\n";
  };
  return options;
}

static llvm::Error run(llvm::ArrayRef<char *> args) {
  ckopt::CompileOptions options = compileOptions(args[1]);
  auto budget = ckopt::parseMemoryBudget(args[3]);
  if (!budget)
    return budget.takeError();
  options.step.remat.budget = *budget;

  std::unique_ptr<ckopt::BatchSource> source;
  ckopt::DataOptions where;
  llvm::StringRef data = args[2];
  if (data.consume_front("own:")) {
    auto own = OwnDigits::read(data);
    if (!own)
      return own.takeError();
    source = std::move(*own);
    where.fields = source->fields().vec();
  } else {
    where.path = data.str();
    where.inputs = "x=images"; // the model's input, the file's array
    where.targets = "labels";
  }

  auto step = ckopt::compile(options, where);
  if (!step)
    return step.takeError();
  llvm::outs() << "arena " << step->plan().figures.arena << " bytes instead of "
               << step->plan().figures.fullArena << "\n";
  auto session = step->load();
  if (!session)
    return session.takeError();
  if (!source) {
    auto file = ckopt::openSource(**session, step->data());
    if (!file)
      return file.takeError();
    source = std::move(*file);
  }

  ckopt::TrainOptions how;
  how.epochs = 1000;
  how.maxSteps = std::atoll(args[4]);
  how.schedule.base = std::atof(args[5]);
  how.progress = false;
  if (args.size() > 7)
    how.checkpoint = args[7];
  if (args.size() > 8)
    how.resume = args[7];
  auto result = step->train(**session, *source, how);
  if (!result)
    return result.takeError();
  llvm::outs() << "steps " << result->steps << ", measured peak "
               << result->measuredPeak << " bytes\n";
  return step->writeWeights(**session, args[6]);
}

int main(int argc, char **argv) {
  if (argc < 7 || argc > 9) {
    llvm::errs() << "usage: train-client MODEL DATA BUDGET STEPS RATE OUT "
                    "[CHECKPOINT [resume]]\n";
    return ckopt::ExitUsage;
  }
  if (llvm::Error error = run({argv, size_t(argc)}))
    return ckopt::reportError(std::move(error), "train-client", llvm::errs());
  return ckopt::ExitOk;
}
