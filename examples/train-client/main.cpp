// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiles an ONNX model into a training step of at most so many bytes, trains
// it and writes what it learned:
//
//   train-client digits_cnn.onnx digits.npz 2MiB 20 0.001 trained.safetensors
//   train-client ... trained.safetensors run.ckpt          writes a checkpoint
//   train-client ... trained.safetensors run.ckpt resume   goes on from it
//
// It prints what `ckopt train` would print, gives the same bits and refuses the
// same things with the same exit codes.
#include "ckopt/Driver/Step.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

static llvm::Error run(llvm::ArrayRef<char *> args) {
  ckopt::CompileOptions options;
  options.model = args[1];
  options.import.batch = 32;
  options.step.loss = *ckopt::autodiff::parseLoss("cross_entropy");
  options.step.optimizer.kind = "adamw";
  options.step.threads = 2;
  auto budget = ckopt::parseMemoryBudget(args[3]);
  if (!budget)
    return budget.takeError();
  options.step.remat.budget = *budget;
  options.messages = [](const ckopt::Message &message) {
    if (message.severity != ckopt::Message::Severity::Remark)
      llvm::errs() << "train-client: " << message.str() << "\n";
  };
  ckopt::DataOptions where;
  where.path = args[2];
  where.inputs = "x=images"; // the model's input, the file's array
  where.targets = "labels";

  auto step = ckopt::compile(options, where);
  if (!step)
    return step.takeError();
  llvm::outs() << "arena " << step->plan().figures.arena << " bytes instead of "
               << step->plan().figures.fullArena << "\n";
  auto session = step->load();
  if (!session)
    return session.takeError();
  auto data = ckopt::loadDataset(**session, step->data());
  if (!data)
    return data.takeError();

  ckopt::TrainOptions how;
  how.epochs = 1000;
  how.maxSteps = std::atoll(args[4]);
  how.schedule.base = std::atof(args[5]);
  how.progress = false;
  if (args.size() > 7)
    how.checkpoint = args[7];
  if (args.size() > 8)
    how.resume = args[7];
  auto result = step->train(**session, *data, how);
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
