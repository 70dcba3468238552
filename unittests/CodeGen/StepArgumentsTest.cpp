//===- StepArgumentsTest.cpp - arguments of a step's calls ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include "ckopt/Target/Cpu/StepToLLVM.h"
#include "ckopt/Target/Targets.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace ckopt;

/// A sum over ranks that reads one value four times: a call of one operand and
/// four results, and a primitive of eight arguments.
static const char *const kText = R"(
func.func private @k(%a: tensor<16xf32>)
    -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
    attributes {ckopt.kernel = "library"} {
  %0:4 = ckopt.all_reduce %a, %a, %a, %a {ranks = 2 : i64}
    : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
    -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
  return %0#0, %0#1, %0#2, %0#3
    : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}
func.func @step(%x: tensor<16xf32> {ckopt.name = "x", ckopt.offset = 0 : i64,
                                    ckopt.role = "input"})
    -> (tensor<16xf32> {ckopt.name = "y"})
    attributes {ckopt.arena_bytes = 4096 : i64} {
  %0:4 = ckopt.kernel_call @k(%x)
    {cost = 0.0 : f64, offsets = array<i64: 64, 128, 192, 256>,
     workspace = 1024 : i64, workspace_offset = 1024 : i64}
    : (tensor<16xf32>)
    -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
  return %0#0 : tensor<16xf32>
}
)";

TEST(StepArguments, ArrayHoldsWhatAPrimitiveTakesSeveralTimes) {
  MLIRContext context;
  test::loadKernelDialects(context);
  auto module = parseSourceString<ModuleOp>(kText, &context);
  ASSERT_TRUE(module);
  LowerStepOptions options;
  options.codegen = CodegenOptions{&cpuTarget()};
  auto lowered = lowerStep(*module, options);
  ASSERT_TRUE(succeeded(lowered));
  // The first array of the function is that of pointers.
  int64_t pointers = 0, stores = 0;
  lowered->module->walk([&](LLVM::LLVMFuncOp function) {
    LLVM::AllocaOp array;
    function.walk([&](LLVM::AllocaOp op) { array = array ? array : op; });
    IntegerAttr size;
    if (!array || !matchPattern(array.getArraySize(), m_Constant(&size)))
      return;
    pointers = size.getInt();
    function.walk([&](LLVM::StoreOp) { ++stores; });
  });
  EXPECT_EQ(stores, 8);
  EXPECT_GE(pointers, stores);
}
