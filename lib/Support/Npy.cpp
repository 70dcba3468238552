//===- Npy.cpp - .npy files as tensors ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes .npy files in the format that ckopt/Base/Npy.h parses.
// O(bytes).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/Npy.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "ckopt/Support/Npz.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace ckopt {

Expected<HostTensor> parseNpy(StringRef bytes, StringRef what) {
  NpyArray array;
  const std::string error = parseNpyArray(bytes, array);
  if (!error.empty())
    return inputError(what + ": " + error);
  HostTensor tensor(array.dtype, array.shape);
  array.copyTo(tensor.mutableRawData());
  return tensor;
}

Expected<HostArray> viewNpy(StringRef bytes, StringRef what,
                            std::shared_ptr<const void> keeper) {
  NpyArray array;
  const std::string error = parseNpyArray(bytes, array);
  if (!error.empty())
    return inputError(what + ": " + error);
  if (array.swapped || array.fortranOrder) {
    HostTensor tensor(array.dtype, array.shape);
    array.copyTo(tensor.mutableRawData());
    return HostArray::of(std::move(tensor));
  }
  HostArray result;
  result.dtype = array.dtype;
  result.shape = std::move(array.shape);
  result.bytes = array.data.data();
  result.keeper = std::move(keeper);
  result.mapped = true;
  return result;
}

Expected<HostArray> mapNpy(StringRef path) {
  auto buffer = readInput(path);
  if (!buffer)
    return buffer.takeError();
  std::shared_ptr<MemoryBuffer> shared = std::move(*buffer);
  return viewNpy(shared->getBuffer(), path, shared);
}

Expected<HostTensor> readNpy(StringRef path) {
  auto buffer = readInput(path);
  if (!buffer)
    return buffer.takeError();
  return parseNpy((*buffer)->getBuffer(), path);
}

Error writeNpy(StringRef path, const HostTensor &tensor) {
  return writeFileAtomically(path, [&](AtomicFile &file) -> Error {
    if (Error error = file.write(npyHeader(tensor.dtype(), tensor.shape())))
      return error;
    return file.write(tensor.rawData(), size_t(tensor.sizeInBytes()));
  });
}

} // namespace ckopt
