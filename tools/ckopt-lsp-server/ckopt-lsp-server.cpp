//===- ckopt-lsp-server.cpp - editors read IR dumps -----------------------===//
#include "ckopt/Pipelines/Pipelines.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  ckopt::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
