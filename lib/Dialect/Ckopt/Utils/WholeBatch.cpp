//===- WholeBatch.cpp - numbers of a batch that ranks share ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/Utils/WholeBatch.h"

using namespace mlir;
using namespace ckopt;

void ckopt::settleBatchNumbers(func::FuncOp function, bool whole) {
  SmallVector<PinOp> pins;
  function.walk([&](PinOp pin) {
    if (pin->hasAttr(kWholeBatchAttr))
      pins.push_back(pin);
  });
  for (PinOp pin : pins) {
    Value number = pin.getInput();
    OpBuilder builder(pin);
    if (whole)
      number =
          ConstantOp::create(builder, pin.getLoc(),
                             cast<ElementsAttr>(pin->getAttr(kWholeBatchAttr)));
    pin.replaceAllUsesWith(number);
    pin.erase();
  }
}
