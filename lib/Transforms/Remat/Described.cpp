//===- Described.cpp - ops have what tables say of them -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Described.h"
#include "ckopt/Support/Error.h"

using namespace mlir;
using namespace ckopt;

/// Describes the ops inside of `root` by the attribute `ckopt.ops` of an op, if
/// it has one.
static LogicalResult describeBy(Operation *owner, Operation *root) {
  Attribute attr = owner->getDiscardableAttr(kOpsAttr);
  if (!attr)
    return success();
  llvm::Expected<OpTable> table = OpTable::fromAttribute(attr);
  if (!table)
    return owner->emitError() << takeErrorText(table.takeError()).text;
  return describeOps(root,
                     {std::make_shared<const OpTable>(std::move(*table))});
}

Described::Described(Operation *root, RematOptions &options) {
  if (options.described)
    return;
  options.described = true;
  sizeTypes(options.hooks, options.ops);
  while (options.mayReadCallees && root->getParentOp())
    root = root->getParentOp();
  describe(root, options.ops);
}

Described::Described(Operation *root, const OpTables &tables) {
  describe(root, tables);
}

void Described::describe(Operation *root, const OpTables &tables) {
  described = root;
  // What stands nearest to an op counts first.
  root->walk([&](Operation *op) {
    if (succeeded(outcome))
      outcome = describeBy(op, op);
  });
  for (Operation *outer = root->getParentOp(); outer && succeeded(outcome);
       outer = outer->getParentOp())
    outcome = describeBy(outer, root);
  if (succeeded(outcome))
    outcome = describeOps(root, tables);
}

Described::~Described() {
  if (described)
    undescribeOps(described);
}
