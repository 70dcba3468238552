//===- Bindings.h - what the parts of the module share ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The module `ckopt._ckopt` is C++ values in Python's form and no more: the
// package in python/ckopt is its only user.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PYTHON_BINDINGS_H
#define CKOPT_PYTHON_BINDINGS_H

#include "ckopt/Support/Error.h"
#include "ckopt/Support/HostTensor.h"
#include "ckopt/Support/Messages.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>

namespace ckopt::python {

namespace nb = nanobind;

/// Travels to Python as the exception of its exit code (ckopt/errors.py).
struct Failure {
  int code;
  std::string text;
};

/// What texts have to say in Python's words.
struct Told {
  MessageText lines;     ///< of diagnostics, to put above an error
  std::string temporary; ///< file of a model that was given as bytes; or ""
};

/// Writes what the library says with settings as keywords.
inline std::string inPython(const MessageText &text, const Told &told) {
  return nameGivenBytes(text, told.temporary).in(SettingStyle::Keywords);
}

/// Throws the error, if it is one.
inline void check(llvm::Error error, const Told &told = {}) {
  if (!error)
    return;
  ErrorText text = takeErrorText(std::move(error));
  throw Failure{int(text.code), inPython(text.after(told.lines), told)};
}

template <typename T> T take(llvm::Expected<T> value, const Told &told = {}) {
  check(value.takeError(), told);
  return std::move(*value);
}

/// Views of arrays by name: C-contiguous, on the CPU. They live as long as the
/// dictionary.
TensorMap toTensors(const nb::dict &arrays);
nb::dlpack::dtype dlpackOf(DType type);
/// The type of elements; nothing for one that ckopt does not know.
std::optional<DType> typeOf(nb::dlpack::dtype type);
/// A dictionary of numpy arrays, which own their bytes.
nb::dict toArrays(TensorMap tensors);

void bindStep(nb::module_ &module);
void bindPlan(nb::module_ &module);
void bindRemat(nb::module_ &module);

} // namespace ckopt::python

#endif // CKOPT_PYTHON_BINDINGS_H
