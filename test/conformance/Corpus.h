//===- Corpus.h - ONNX backend test folders ------------------- -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A case is a folder with `model.onnx` and folders `test_data_set_N` that hold
// `input_K.pb` and `output_K.pb`, as ONNX's backend test suite lays them out.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_CONFORMANCE_CORPUS_H
#define CKOPT_TEST_CONFORMANCE_CORPUS_H

#include "ckopt/Support/HostTensor.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace conformance {

struct Case {
  std::string name;                  ///< "node/test_abs"
  std::string model;                 ///< path of the file
  std::vector<std::string> dataSets; ///< folders, in the order of their numbers
};

/// All cases below `root`, by name; one where `root` itself is a case.
llvm::Expected<std::vector<Case>> findCases(llvm::StringRef root);

/// A graph input or output.
struct Port {
  std::string name;
  bool isTensor = true;
  bool isFloat = false; ///< f16, bf16, f32 or f64
  bool isWide = false;  ///< f32 or f64
  bool hasInitializer = false;
};

struct Signature {
  std::vector<Port> inputs, outputs;
  /// Why ckopt refuses models of this kind by design, "" for all others.
  std::string family;
  bool narrow = false; ///< computes with f16 or bf16 somewhere
};

llvm::Expected<Signature> readSignature(const std::string &model);

/// The elements of `FOLDER/input_K.pb` (or output), K from 0 on, for `ports`;
/// an input that has an initializer may be left out.
llvm::Expected<std::vector<std::pair<std::string, ckopt::HostTensor>>>
readTensors(const std::string &folder, const char *kind,
            const std::vector<Port> &ports);

} // namespace conformance

#endif // CKOPT_TEST_CONFORMANCE_CORPUS_H
