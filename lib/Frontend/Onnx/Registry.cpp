//===- Registry.cpp - operators by name and opset -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds handlers. A handler is valid from its version on until the operator's
// next one. Adding an operator is one line in its category's table.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
using Versions = std::map<int64_t, Handler>;
using Table = std::map<std::pair<std::string, std::string>, Versions>;
} // namespace

static const Table &table() {
  static const Table all = [] {
    Table table;
    for (auto category : {elementwiseHandlers(),   activationHandlers(),
                          shapeHandlers(),         indexingHandlers(),
                          constantHandlers(),      reductionHandlers(),
                          matmulHandlers(),        windowHandlers(),
                          normalizationHandlers(), recurrentHandlers(),
                          lossHandlers(),          resizeHandlers(),
                          einsumHandlers(),        attentionHandlers(),
                          stateSpaceHandlers(),    padHandlers(),
                          poolHandlers(),          rearrangeHandlers(),
                          samplingHandlers(),      quantizeHandlers(),
                          signalHandlers(),        roiHandlers(),
                          elementHandlers(),       sequenceHandlers(),
                          controlHandlers(),       orderHandlers(),
                          selectionHandlers(),     randomHandlers(),
                          trigonometricHandlers(), previewHandlers(),
                          legacyHandlers()})
      for (const HandlerEntry &entry : category)
        table[{entry.domain, entry.op}][entry.since] = entry.handler;
    return table;
  }();
  return all;
}

Handler onnx_frontend::findHandler(llvm::StringRef domain, llvm::StringRef op,
                                   int64_t opset) {
  auto found = table().find({domain.str(), op.str()});
  if (found == table().end())
    return nullptr;
  auto version = found->second.upper_bound(opset);
  return version == found->second.begin() ? nullptr
                                          : std::prev(version)->second;
}

bool onnx_frontend::isKnownOperator(llvm::StringRef domain,
                                    llvm::StringRef op) {
  return table().count({domain.str(), op.str()});
}

std::vector<SupportedOp> onnx_frontend::listSupportedOps() {
  std::vector<SupportedOp> list;
  for (const auto &[key, versions] : table()) {
    SupportedOp op{key.first, key.second, {}};
    for (const auto &[since, handler] : versions)
      op.opsets.push_back(since);
    list.push_back(std::move(op));
  }
  return list;
}

void onnx_frontend::printSupportedOps(llvm::raw_ostream &os) {
  os << "| operator | forms from opset |\n| --- | --- |\n";
  for (const SupportedOp &op : listSupportedOps()) {
    os << "| " << (op.domain.empty() ? "" : op.domain + ".") << op.name
       << " | ";
    llvm::interleaveComma(op.opsets, os);
    os << " |\n";
  }
}
