//===- ProductClasses.cpp - what is said of --matmul-precision ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which class a name asks for, the target says; each kernel's class stands in
// the report, and a class that is not computed as its name says in a remark.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ckopt;

/// Says where products are computed otherwise than their class's name says.
void Compilation::noteProducts() {
  MatmulPrecision name = opts.step.matmulPrecision;
  auto products = llvm::cantFail(targetInfo->productPrecision(name));
  if (name == MatmulPrecision::High &&
      products == runtime::ProductPrecision::F32)
    remark(
        "matmul-precision: high runs as f32 on CPUs, where nothing nearly as "
        "exact is faster");
  else if (targetInfo->traits.roundsApart &&
           products != runtime::ProductPrecision::F32 &&
           !targetInfo->traits.bf16Products)
    remark("matmul-precision: this machine has no instructions for products of "
           "bf16; operands that were rounded to it are multiplied in f32, to "
           "the same "
           "products");
}

/// Returns the class of a library kernel's products, where products of f32
/// that are as they were have the class `wide`.
static std::string productClass(func::FuncOp kernel, llvm::StringRef wide) {
  if (auto given = kernel->getAttrOfType<StringAttr>(attrs::kProducts))
    return given.str();
  Type element = getElementTypeOrSelf(kernel.getArgumentTypes().front());
  if (element.isF32())
    return wide.str();
  return element.isF64() ? "f64" : element.isBF16() ? "bf16" : "f16";
}

void Compilation::summarizeProducts(func::FuncOp step) {
  std::string wide = "f32";
  if (!targetInfo->traits.roundsApart)
    wide = runtime::productPrecisionName(llvm::cantFail(
        targetInfo->productPrecision(opts.step.matmulPrecision)));
  SymbolTable symbols(module());
  llvm::MapVector<llvm::StringRef, PlanSummary::ProductKernel> products;
  step.walk([&](KernelCallOp call) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    auto kind = kernel->getAttrOfType<StringAttr>(attrs::kKernel);
    if (!kind || kind.getValue() != "library")
      return;
    PlanSummary::ProductKernel &product = products[kernel.getSymName()];
    product.kernel = kernel.getSymName();
    product.precision = productClass(kernel, wide);
    // Of a product that reads a weight as it is stored, only that is one.
    for (Operation &op : kernel.front().without_terminator())
      if (&op == &kernel.front().front() || isa<ContractionOpInterface>(op))
        product.flops += cast<KernelOpInterface>(op).getFlops();
    ++product.calls;
  });
  for (auto &[name, product] : products)
    planSummary.products.push_back(std::move(product));
}
