//===- Handles.h - what the files of the C interface share ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each entry of ckopt-c/ckopt.h runs its work in guarded(): the work returns an
// llvm::Error, which becomes a status and the thread's error text, as do
// exceptions of the standard library (this layer alone is compiled with them).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CAPI_HANDLES_H
#define CKOPT_LIB_CAPI_HANDLES_H

#include "ckopt-c/ckopt.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Settings/Settings.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/HostTensor.h"
#include "ckopt/Support/Messages.h"

#include <cstring>
#include <exception>
#include <locale.h>
#include <memory>
#include <new>
#include <string>
#include <vector>

struct ckopt_tensors {
  ckopt::TensorMap map;
};

struct ckopt_plan {
  static constexpr size_t kNumTexts = CKOPT_PLAN_TIMELINE_TRACE + 1;

  ckopt_plan_figures figures = {};
  std::string texts[kNumTexts];
  std::vector<int64_t> steps;
};

namespace ckopt::capi {

/// Wrong use of the interface.
llvm::Error misuse(const llvm::Twine &text);
/// An error of a status that is no exit code.
llvm::Error statusError(ckopt_status status, const llvm::Twine &text);

/// Makes the text the thread's, and returns the status.
ckopt_status fail(ckopt_status status, const char *text) noexcept;
ckopt_status fail(llvm::Error error);

/// Keeps the numbers of this thread's text ("0.5") those of the C locale: the
/// process may have another one, in which JSON would be read and written wrong.
class NumbersAsInC {
public:
  NumbersAsInC();
  ~NumbersAsInC();
  NumbersAsInC(const NumbersAsInC &) = delete;

private:
  locale_t before;
};

template <typename Work> ckopt_status guarded(Work work) noexcept {
  try {
    NumbersAsInC numbers;
    return fail(work());
  } catch (const std::bad_alloc &) {
    return fail(CKOPT_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception &exception) {
    return fail(CKOPT_INTERNAL, exception.what());
  } catch (...) {
    return fail(CKOPT_INTERNAL, "an exception of a callback or of a library");
  }
}

/// The file of a model; a temporary one goes with the last who needs it.
struct ModelFile {
  std::string path;
  std::string folder; ///< "": the caller's file
  ~ModelFile();
};

/// Hands messages on, and keeps the errors among them for the error text.
struct Messages {
  ckopt_message_handler handler = nullptr;
  void *user = nullptr;
  bool print = true; ///< warnings, as nobody set a handler
  ErrorLines errors;
  /// The file of a model that was given as bytes; "": the caller's own.
  std::string temporary;

  void add(const Message &message);
  /// Puts the errors that were said since the last call before the text, or
  /// in its place where it only points at them.
  llvm::Error explain(llvm::Error error);

private:
  /// Of the last message that was no note.
  Message::Severity kind = Message::Severity::Remark;
};

/// Checks tensors of the caller and views them.
llvm::Expected<TensorMap> viewTensors(const ckopt_tensor *tensors,
                                      size_t count);
void describeTensor(const TensorMap::Entry &entry, ckopt_tensor &tensor);
std::unique_ptr<ckopt_tensors> ownTensors(TensorMap map);

/// Reads a struct of the caller's that may be shorter than ours: what is
/// missing is zero.
template <typename T> llvm::Expected<T> readSized(const T *given) {
  T result = {};
  if (given) {
    if (given->size < sizeof(size_t))
      return misuse("a struct's member `size` is not set");
    std::memcpy(&result, given, std::min(given->size, sizeof(T)));
  }
  return result;
}
/// Fills a struct of the caller's, as far as it goes.
template <typename T> llvm::Error writeSized(T value, T *to) {
  if (!to)
    return misuse("the struct for the result is NULL");
  if (to->size < sizeof(size_t))
    return misuse("a struct's member `size` is not set");
  value.size = to->size;
  std::memcpy(to, &value, std::min(to->size, sizeof(T)));
  return llvm::Error::success();
}

} // namespace ckopt::capi

struct ckopt_model {
  std::shared_ptr<const ckopt::capi::ModelFile> file;
};

struct ckopt_options {
  bool graph = false;
  std::vector<ckopt::GivenSetting> settings;
  std::string help;
  ckopt_message_handler handler = nullptr;
  void *user = nullptr;
  bool print = true;
};

namespace ckopt::capi {

/// A model with the settings of a step, ready to be compiled.
struct Request {
  std::shared_ptr<const ModelFile> file;
  std::shared_ptr<Messages> messages;
  StepSettings settings;
};
llvm::Expected<Request> readRequest(const ckopt_model *model,
                                    const ckopt_options *options);

/// Makes the handle of a compilation's plan.
std::unique_ptr<ckopt_plan> describePlan(const Compilation &compilation);

} // namespace ckopt::capi

#endif // CKOPT_LIB_CAPI_HANDLES_H
