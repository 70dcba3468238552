//===- Library.cpp - statuses, error texts, tensors, in C -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Handles.h"

#include "ckopt/Base/Version.h"
#include "ckopt/Runtime/ckrt.h"
#include "ckopt/Support/Npz.h"
#include "ckopt/Support/Safetensors.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"

using namespace ckopt;
using namespace ckopt::capi;

static constexpr bool sameNumbers(int ours, int theirs) {
  return ours == theirs;
}
static_assert(sameNumbers(CKOPT_INPUT_ERROR, ExitInputError) &&
              sameNumbers(CKOPT_INFEASIBLE, ExitInfeasible) &&
              sameNumbers(CKOPT_NO_PLAN_FOUND, ExitNoPlanFound) &&
              sameNumbers(CKOPT_UNSUPPORTED, ExitUnsupported) &&
              sameNumbers(CKOPT_NON_FINITE, ExitNonFinite) &&
              sameNumbers(CKOPT_NO_DEVICE, ExitNoDevice) &&
              sameNumbers(CKOPT_LOCK, ExitLock) &&
              sameNumbers(CKOPT_RANK, ExitRank) &&
              sameNumbers(CKOPT_USAGE, ExitUsage) &&
              sameNumbers(CKOPT_INTERNAL, ExitInternal) &&
              sameNumbers(CKOPT_IO_ERROR, ExitIoError));
static_assert(sameNumbers(CKOPT_F64, CKRT_F64) &&
              sameNumbers(CKOPT_U16, CKRT_U16) &&
              sameNumbers(CKOPT_U16, int(DType::U16)));

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

static std::string &lastError() {
  static thread_local std::string text;
  return text;
}

ckopt_status capi::fail(ckopt_status status, const char *text) noexcept {
  try {
    lastError() = text;
  } catch (...) { // no memory for the text: the status is left
  }
  return status;
}

ckopt_status capi::fail(llvm::Error error) {
  if (!error)
    return CKOPT_OK;
  ErrorText text = takeErrorText(std::move(error));
  return fail(int32_t(text.code), text.message.in(SettingStyle::Named).c_str());
}

llvm::Error capi::statusError(ckopt_status status, const llvm::Twine &text) {
  return makeError(ExitCode(status), text);
}

llvm::Error capi::misuse(const llvm::Twine &text) {
  return statusError(CKOPT_INVALID_ARGUMENT, text);
}

NumbersAsInC::NumbersAsInC() {
  // One for the life of the process.
  static const locale_t numbers =
      newlocale(LC_NUMERIC_MASK, "C", duplocale(LC_GLOBAL_LOCALE));
  before = numbers ? uselocale(numbers) : nullptr;
}

NumbersAsInC::~NumbersAsInC() {
  if (before)
    uselocale(before);
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

const char *ckopt_version(void) { return CKOPT_VERSION; }

const char *ckopt_version_line(void) {
  static const std::string line = versionLine("ckopt", LLVM_VERSION_STRING);
  return line.c_str();
}

uint32_t ckopt_abi_version(void) { return CKOPT_ABI_VERSION; }

const char *ckopt_last_error(void) { return lastError().c_str(); }

const char *ckopt_status_string(ckopt_status status) {
  switch (status) {
  case CKOPT_OK:
    return "success";
  case CKOPT_INPUT_ERROR:
    return "a file, shape, type or value is wrong";
  case CKOPT_INFEASIBLE:
    return "no plan fits the budget";
  case CKOPT_NO_PLAN_FOUND:
    return "no plan was found within the time limit";
  case CKOPT_UNSUPPORTED:
    return "the model has an operator or opset that ckopt does not know";
  case CKOPT_NON_FINITE:
    return "a loss or a value is not finite";
  case CKOPT_NO_DEVICE:
    return "there is no CUDA driver, or no such device";
  case CKOPT_DEVICE_TOO_OLD:
    return "the device or its driver is too old";
  case CKOPT_DEVICE_MEMORY:
    return "the device has too little memory";
  case CKOPT_DEVICE_CODE:
    return "the driver refuses the compiled code";
  case CKOPT_DEVICE_LOST:
    return "the device does not answer any more";
  case CKOPT_KERNEL_FAILED:
    return "a kernel failed on the device";
  case CKOPT_NO_LIBRARY:
    return "cuBLASLt or cuDNN is missing, or refuses";
  case CKOPT_LOCK:
    return "the lock file names algorithms that are missing";
  case CKOPT_RANK:
    return "another rank does not answer, or differs";
  case CKOPT_USAGE:
    return "an option is wrong";
  case CKOPT_INTERNAL:
    return "a defect of ckopt";
  case CKOPT_IO_ERROR:
    return "a file cannot be written";
  case CKOPT_INVALID_ARGUMENT:
    return "an argument is invalid";
  case CKOPT_BUSY:
    return "the step is in use by the call whose callback called it";
  case CKOPT_OUT_OF_MEMORY:
    return "out of memory";
  case CKOPT_NOT_FOUND:
    return "nothing has this name";
  case CKOPT_STOPPED:
    return "a callback asked to stop";
  default:
    return "unknown status";
  }
}

const char *ckopt_dtype_name(ckopt_dtype dtype) {
  return isDType(DType(dtype)) ? dtypeName(DType(dtype)) : nullptr;
}

size_t ckopt_dtype_size(ckopt_dtype dtype) {
  return isDType(DType(dtype)) ? size_t(dtypeSize(DType(dtype))) : 0;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static llvm::Expected<HostTensor> viewTensor(const ckopt_tensor &tensor) {
  if (!isDType(DType(tensor.dtype)))
    return misuse(llvm::Twine(tensor.dtype) + " is no element type");
  DType dtype = DType(tensor.dtype);
  if (tensor.rank < 0 || tensor.rank > 64)
    return misuse("the rank is " + llvm::Twine(tensor.rank));
  if (tensor.rank && !tensor.shape)
    return misuse("the shape is NULL");
  std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.rank);
  auto elements = checkedNumElements(shape, dtypeSize(dtype));
  if (!elements)
    return misuse(takeErrorText(elements.takeError()).text);
  if (tensor.bytes != size_t(*elements * dtypeSize(dtype)))
    return misuse(std::string(dtypeName(dtype)) + " " + shapeString(shape) +
                  " takes " +
                  llvm::Twine(uint64_t(*elements * dtypeSize(dtype))) +
                  " bytes, not " + llvm::Twine(uint64_t(tensor.bytes)));
  if (!tensor.data && tensor.bytes)
    return misuse("the data is NULL");
  static const int64_t nothing = 0; // what a tensor without elements points at
  return HostTensor::view(dtype, std::move(shape),
                          tensor.data ? tensor.data : &nothing, nullptr);
}

llvm::Expected<TensorMap> capi::viewTensors(const ckopt_tensor *tensors,
                                            size_t count) {
  TensorMap result;
  if (count && !tensors)
    return misuse("the tensors are NULL");
  for (size_t i = 0; i < count; ++i) {
    if (!tensors[i].name)
      return misuse("tensor " + llvm::Twine(uint64_t(i)) + " has no name");
    std::string quoted = "'" + std::string(tensors[i].name) + "'";
    auto view = viewTensor(tensors[i]);
    if (!view)
      return withContext(view.takeError(), quoted);
    if (!result.insert(tensors[i].name, std::move(*view)))
      return misuse(quoted + " is given twice");
  }
  return result;
}

void capi::describeTensor(const TensorMap::Entry &entry, ckopt_tensor &tensor) {
  const HostTensor &value = entry.second;
  tensor.name = entry.first.c_str();
  tensor.dtype = ckopt_dtype(value.dtype());
  tensor.rank = int32_t(value.rank());
  tensor.shape = value.rank() ? value.shape().data() : nullptr;
  tensor.data = value.rawData();
  tensor.bytes = size_t(value.sizeInBytes());
}

std::unique_ptr<ckopt_tensors> capi::ownTensors(TensorMap map) {
  return std::make_unique<ckopt_tensors>(ckopt_tensors{std::move(map)});
}

static llvm::Expected<TensorMap> readTensors(llvm::StringRef path) {
  if (path.ends_with(".safetensors")) {
    auto file = StoredTensors::open(path);
    if (!file)
      return file.takeError();
    return file->readAll();
  }
  auto file = openArrayFile(path);
  if (!file)
    return file.takeError();
  TensorMap result;
  for (const std::string &name : file->arrays) {
    auto array = file->read(name);
    if (!array)
      return array.takeError();
    result.set(name, array->tensor());
  }
  return result;
}

ckopt_status ckopt_tensors_from_file(const char *path,
                                     ckopt_tensors **tensors) {
  return guarded([&]() -> llvm::Error {
    if (!tensors)
      return misuse("the result is NULL");
    *tensors = nullptr;
    if (!path)
      return misuse("the path is NULL");
    auto read = readTensors(path);
    if (!read)
      return read.takeError();
    *tensors = ownTensors(std::move(*read)).release();
    return llvm::Error::success();
  });
}

void ckopt_tensors_destroy(ckopt_tensors *tensors) { delete tensors; }

size_t ckopt_tensors_count(const ckopt_tensors *tensors) {
  return tensors ? tensors->map.size() : 0;
}

ckopt_status ckopt_tensors_get(const ckopt_tensors *tensors, size_t index,
                               ckopt_tensor *tensor) {
  return guarded([&]() -> llvm::Error {
    if (!tensors || !tensor)
      return misuse("the tensors or the result are NULL");
    if (index >= tensors->map.size())
      return statusError(
          CKOPT_NOT_FOUND,
          "there are " + llvm::Twine(uint64_t(tensors->map.size())) +
              " tensors, and none of number " + llvm::Twine(uint64_t(index)));
    describeTensor(tensors->map.begin()[ptrdiff_t(index)], *tensor);
    return llvm::Error::success();
  });
}

ckopt_status ckopt_tensors_find(const ckopt_tensors *tensors, const char *name,
                                ckopt_tensor *tensor) {
  return guarded([&]() -> llvm::Error {
    if (!tensors || !name || !tensor)
      return misuse("the tensors, the name or the result are NULL");
    std::vector<std::string> names;
    for (const TensorMap::Entry &entry : tensors->map) {
      if (entry.first == name) {
        describeTensor(entry, *tensor);
        return llvm::Error::success();
      }
      names.push_back(entry.first);
    }
    return statusError(CKOPT_NOT_FOUND,
                       "no tensor '" + llvm::Twine(name) + "'; there are " +
                           (names.empty() ? "none" : llvm::join(names, ", ")));
  });
}
