//===- ckopt.h - compile and train models from a program --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// This header has everything for programs that compile models, load steps and
// train them. It includes no header of MLIR (of LLVM, only those of Support):
//
//   auto settings = ckopt::readSettings("model.onnx",
//                                       {{"loss", "cross_entropy"},
//                                        {"memory-budget", "64MiB"}});
//   auto step = ckopt::compile(settings->compile, settings->data);
//   auto session = step->load();
//   auto samples = ckopt::openSource(**session, step->data());
//   auto result = step->train(**session, **samples, settings->train);
//   auto error = step->writeWeights(**session, "trained.onnx");
//
// Options are structs (CompileOptions.h), or texts by the names of flags
// (Settings.h). Train/Step.h states ownership and errors; StepRun.h is for
// programs that bring their own batches. Programs that work on the IR include
// Compiler/Compile.h, and MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CKOPT_H
#define CKOPT_CKOPT_H

#include "ckopt/Compiler/CompileOptions.h"
#include "ckopt/Compiler/PlanSummary.h"
#include "ckopt/Settings/JoinRanks.h"
#include "ckopt/Settings/Settings.h"
#include "ckopt/Train/Data/BatchSource.h"
#include "ckopt/Train/Session.h"
#include "ckopt/Train/Step.h"
#include "ckopt/Train/StepRun.h"
#include "ckopt/Train/Training.h"

#endif // CKOPT_CKOPT_H
