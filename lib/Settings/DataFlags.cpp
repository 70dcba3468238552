//===- DataFlags.cpp - the flags of data, the run and its times ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Settings/Flags.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ckopt;
using llvm::StringRef;

using namespace ckopt::takers;

void DriverFlags::addDataFlags() {
  table.beginSection("Data");
  unsigned data = Train | Compare | Grad | Run;
  add("data", "FILE", data,
      "arrays of samples: .npz, .npy, a folder of .npy, a pattern "
      "('train-*.npz'), or - (.npy arrays one after another)",
      flag::inputFile("data", o.data.path));
  add("data-cache", "FOLDER", data,
      "where compressed arrays of .npz files are unpacked to, once (default: "
      "memory)",
      flag::text("data-cache", o.data.cache));
  add("tokens", "FILE", data,
      "a text as numbers without a header: pieces of " + Setting("sequence") +
          " tokens are the array 'tokens', the tokens that follow 'next'",
      flag::inputFile("tokens", o.data.tokens));
  add("token-type", "TYPE", data, "uint8, uint16 (default), int32 or uint32",
      [this](StringRef text) -> llvm::Error {
        auto type = llvm::StringSwitch<std::optional<DType>>(text)
                        .Case("uint8", DType::U8)
                        .Case("uint16", DType::U16)
                        .Case("int32", DType::I32)
                        .Case("uint32", DType::U32)
                        .Default(std::nullopt);
        if (!type)
          return usageError(Setting("token-type") + ": '" + text +
                            "' is not one of uint8, uint16, int32, uint32");
        o.data.tokenType = *type;
        return llvm::Error::success();
      });
  add("sequence", "N", data, "tokens of a sample",
      flag::number<int64_t>("sequence", o.data.sequence, 1));
  add("images", "FOLDER", data,
      "PNG and JPEG files, a folder for each class; labels count the classes' "
      "names in sorted order",
      flag::inputFile("images", o.data.images));
  add("resize", "N", data,
      "images: their shorter side before the middle is cut out (default: the "
      "smallest that holds what the model takes)",
      flag::number<int64_t>("resize", o.data.imageOptions.resize, 1));
  add("augment", "LIST", Train | Compare,
      "images: flip, crop[:PADDING], resized-crop[:LEAST_AREA], at random",
      [this](StringRef text) -> llvm::Error {
        auto augment = parseAugmentation(text, Setting("augment"));
        if (!augment)
          return augment.takeError();
        o.data.imageOptions.augment = *augment;
        return llvm::Error::success();
      });
  add("normalize", "M,.../D,...", data,
      "images: means and deviations of values from 0 to 1, or 'imagenet' "
      "(default: none)",
      [this](StringRef text) {
        return parseNormalization(text, Setting("normalize"),
                                  o.data.imageOptions);
      });
  add("decode-threads", "N", data,
      "images: threads that decode a batch (default: the cores, or " +
          Setting("threads") + ")",
      flag::number<int64_t>("decode-threads", o.data.imageOptions.threads, 1));
  add("validation", "FILE", Train | Compare,
      "samples for evaluation alone, as " + Setting("data") + ", " +
          Setting("tokens") + " or " + Setting("images"),
      flag::inputFile("validation", o.validation));
  add("validate-every", "N", Train,
      "evaluate after every N steps, too (default: at the end)",
      flag::number<int64_t>("validate-every", o.train.validateEvery, 1));
  add("metrics", "LIST", Train | Compare,
      "what evaluations compute beside loss and accuracy: topK (top5), "
      "perplexity, mse",
      [this](StringRef text) -> llvm::Error {
        auto metrics = parseMetrics(text, Setting("metrics"));
        if (!metrics)
          return metrics.takeError();
        o.data.metrics = std::move(*metrics);
        return llvm::Error::success();
      });
  add("best-by", "METRIC", Train,
      "what the best evaluation is judged by: loss (default), accuracy or one "
      "of " +
          Setting("metrics"),
      [this](StringRef text) -> llvm::Error {
        auto metric = parseMetric(text, Setting("best-by"));
        if (!metric)
          return metric.takeError();
        o.train.bestBy = *metric;
        return llvm::Error::success();
      });
  add("keep-best", "FILE", Train,
      "the state of the best evaluation: a checkpoint (.safetensors) or "
      "weights (.onnx)",
      flag::outputFile("keep-best", o.train.keepBest, Setting("resume")));
  add("early-stop", "N", Train,
      "stop after N evaluations in a row that were not better",
      flag::number<int64_t>("early-stop", o.train.earlyStop, 1));
  add("log", "FILE", Train,
      "a line for each step: loss, rate, time, validation (.csv or .jsonl)",
      flag::outputFile("log", o.train.log));
  add("targets", "ARRAY", data | Program,
      "array of targets (default y); of several losses OUTPUT=ARRAY,...",
      flag::text("targets", o.data.targets));
}

void DriverFlags::addRunFlags() {
  table.beginSection("The run");
  add("epochs", "N", Train | Compare, "passes over the data (default 1)",
      flag::number<int64_t>("epochs", o.train.epochs, 0));
  add("max-steps", "N", Train | Compare, "stop after so many steps",
      flag::number<int64_t>("max-steps", o.train.maxSteps, 0));
  add("holdout", "F", Train | Compare,
      "share of the samples kept for evaluation (seeded)",
      flag::number<double>("holdout", o.train.holdout, 0));
  add("checkpoint", "FILE", Train,
      "write a checkpoint (.safetensors) after each epoch",
      flag::outputFile("checkpoint", o.train.checkpoint, Setting("resume")));
  add("checkpoint-every", "N", Train, "steps between checkpoints",
      flag::number<int64_t>("checkpoint-every", o.train.checkpointEvery, 1));
  add("resume", "FILE", Train, "go on from a checkpoint, with the same bits",
      flag::inputFile("resume", o.train.resume));
  add("check-finite", "", Train | Compare | Bench | Program,
      "name the first op that makes a NaN or infinity",
      flag::turnOn(o.checkFinite));
  add("verify-remat", "[=keep]", Train | Compare | Program,
      "compare each recomputed value with the first one",
      [this](StringRef value) -> llvm::Error {
        if (!value.empty() && value != "keep")
          return usageError(Setting("verify-remat") +
                            " takes no value or 'keep'");
        o.verifyRemat = true;
        o.keepValues = value == "keep";
        return llvm::Error::success();
      });
  add("parallel", "dp:N|fsdp:N|dp:M,fsdp:N", Train | Plan | Compile | Program,
      "N (or M times N) processes train together, each on a share of every "
      "batch: mpirun -n N ckopt train ... (docs/parallel.md); " +
          Setting("batch") +
          " is that of all; fsdp: N of them share weights and states",
      [this](StringRef text) -> llvm::Error {
        return parseParallel(text, o.compile.step);
      });
  add("sync-batchnorm", "", Train | Plan | Compile | Program,
      "with " + Setting("parallel") +
          ": batch norms normalize by the statistics of the whole batch, not "
          "of each process's share",
      flag::turnOn(o.compile.step.syncNorms));
  add("no-overlap", "", Train | Plan | Compile | Program,
      "with " + Setting("parallel") +
          ": ranks exchange tensors while nothing else runs, which takes fewer "
          "bytes and more time; the bits are the same",
      [this](StringRef) {
        o.compile.step.overlap = false;
        return llvm::Error::success();
      });
  add("rank-timeout", "SECONDS", Train | Program,
      "with " + Setting("parallel") +
          ": end where another rank has not answered for so long (default: "
          "wait)",
      flag::number<double>("rank-timeout", o.rankTimeout, 0));
}

void DriverFlags::addTimeFlags() {
  table.beginSection("Times");
  add("steps", "N", Bench, "steps to time (default 10)",
      flag::number<int64_t>("steps", o.steps, 1));
  add("profile", "", Bench | Program,
      "time each kernel; print the table by time", flag::turnOn(o.profile));
  add("profile-out", "FILE", Bench,
      "time each kernel; write the times for " +
          Setting("cost-model", "profile=FILE"),
      flag::outputFile("profile-out", o.profileOut));
  add("calibrate", "FILE", Bench,
      "time each kernel; fit the machine's rates to the times and write them "
      "for " +
          Setting("cost-model", "profile=FILE") + ", for this and other models",
      flag::outputFile("calibrate", o.calibrate));
  add("collectives", "FILE", Bench,
      "no model: time sums, gathers and broadcasts between the ranks that "
      "mpirun starts, by size, and write the times for " +
          Setting("cost-model", "profile=FILE") + " (docs/parallel.md)",
      flag::outputFile("collectives", o.collectives));
  add("warmup", "N", Bench, "steps before timing (default 2)",
      flag::number<int64_t>("warmup", o.warmup, 0));
}
