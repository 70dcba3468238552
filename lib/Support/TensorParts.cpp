//===- TensorParts.cpp - tensors that are read in pieces ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/TensorParts.h"

using namespace llvm;

namespace ckopt {

Expected<HostTensor> MapParts::read(size_t number, int64_t begin,
                                    int64_t count) {
  const HostTensor &whole = (tensors.begin() + ptrdiff_t(number))->second;
  return HostTensor::view(whole.dtype(), {count},
                          static_cast<const char *>(whole.rawData()) +
                              begin * dtypeSize(whole.dtype()),
                          std::make_shared<HostTensor>(whole));
}

Error forEachPiece(
    TensorParts &tensors, size_t number,
    function_ref<Error(const HostTensor &piece, int64_t begin)> take) {
  const TensorSpec &spec = tensors.specs()[number];
  const int64_t most = kPieceBytes / dtypeSize(spec.dtype);
  int64_t elements = 1;
  for (int64_t extent : spec.shape)
    elements *= extent;
  for (int64_t begin = 0; begin < elements; begin += most) {
    auto piece = tensors.read(number, begin, std::min(most, elements - begin));
    if (!piece)
      return piece.takeError();
    if (Error error = take(*piece, begin))
      return error;
  }
  return Error::success();
}

} // namespace ckopt
