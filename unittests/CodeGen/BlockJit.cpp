//===- BlockJit.cpp - runs kernels in block form on the CPU ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "BlockJit.h"
#include "ckopt/CodeGen/Kernels.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

std::unique_ptr<MLIRContext> test::blockContext() {
  DialectRegistry registry;
  registerKernelDialects(registry);
  registry.insert<func::FuncDialect, gpu::GPUDialect, memref::MemRefDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  auto context = std::make_unique<MLIRContext>(registry);
  context->loadAllAvailableDialects();
  return context;
}

struct BlockJit::Impl {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

void BlockJit::compile(const std::string &text,
                       const std::function<void(ModuleOp)> &change) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  std::unique_ptr<MLIRContext> context = blockContext();
  auto module = parseSourceString<ModuleOp>(text, context.get());
  ASSERT_TRUE(module) << text;
  if (change)
    change(*module);
  PassManager manager(context.get());
  buildBlockToLoopsPipeline(manager);
  ASSERT_TRUE(succeeded(manager.run(*module))) << text;
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  auto llvmModule = translateModuleToLLVMIR(*module, *llvmContext);
  ASSERT_TRUE(llvmModule);
  impl->jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  llvmModule->setDataLayout(impl->jit->getDataLayout());
  llvm::cantFail(impl->jit->addIRModule(llvm::orc::ThreadSafeModule(
      std::move(llvmModule), std::move(llvmContext))));
}
BlockJit::BlockJit(const std::string &text,
                   const std::function<void(ModuleOp)> &change)
    : impl(std::make_unique<Impl>()) {
  compile(text, change);
}
BlockJit::~BlockJit() = default;

void BlockJit::run(const std::string &symbol, std::vector<void *> parameters,
                   bool descending) const {
  ASSERT_TRUE(impl->jit);
  auto address = impl->jit->lookup(emulationSymbol(symbol, descending));
  ASSERT_TRUE(bool(address)) << llvm::toString(address.takeError());
  std::vector<void *> places;
  for (void *&parameter : parameters)
    places.push_back(&parameter);
  address->toPtr<void(void *const *)>()(places.data());
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static const std::string pointer = "!llvm.ptr {llvm.align = 64 : i64}";
static const std::string workgroup = ", #gpu.address_space<workgroup>>";
static const std::string threads = "{mapping = [#gpu.thread<x>]}\n";
static const std::string blocks = "{mapping = [#gpu.block<x>]}\n";

static std::string launch(int64_t grid, int64_t block) {
  return "attributes {ckopt.gpu.grid = " + std::to_string(grid) +
         " : i64, ckopt.gpu.block = " + std::to_string(block) + " : i64} {\n";
}

/// %NAME = address of element %INDEX (an index) of %BASE, f32.
static std::string address(const std::string &name, const std::string &base,
                           const std::string &index) {
  return "%i_" + name + " = arith.index_cast %" + index +
         " : index to i64\n %" + name + " = llvm.getelementptr %" + base +
         "[%i_" + name + "] : (!llvm.ptr, i64) -> !llvm.ptr, f32\n";
}

/// sh[t] += sh[t + s] for t < s.
static std::string treeStep(int64_t s) {
  std::string type = "memref<256xf32" + workgroup;
  std::string add = "%u = arith.addi %t, %s : index\n"
                    "%a = memref.load %sh[%t] : " +
                    type + "\n%c = memref.load %sh[%u] : " + type +
                    "\n%d = arith.addf %a, %c : f32\n"
                    "memref.store %d, %sh[%t] : " +
                    type + "\n";
  std::string size = std::to_string(s);
  if (s >= 32)
    return "scf.forall (%t) in (" + size + ") {\n%s = arith.constant " + size +
           " : index\n" + add + "} " + threads;
  return "scf.forall (%t) in (32) {\n%s = arith.constant " + size +
         " : index\n%below = arith.cmpi ult, %t, %s : index\n"
         "scf.if %below {\n" +
         add +
         "}\n} {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = " + size +
         " : i64}\n";
}

std::string test::rowSum(int64_t rows, int64_t columns, bool race) {
  std::string n = std::to_string(columns);
  std::string text = "func.func @row_sum(%x: " + pointer + ", %y: " + pointer +
                     ", %scratch: " + pointer + ", %sh: memref<256xf32" +
                     workgroup + ") " + launch(rows, 256) +
                     "scf.forall (%b) in (" + std::to_string(rows) +
                     ") {\nscf.forall (%t) in (256) {\n"
                     "%n = arith.constant " +
                     n +
                     " : index\n%step = arith.constant 256 : index\n"
                     "%zero = arith.constant 0.0 : f32\n"
                     "%row = arith.muli %b, %n : index\n"
                     "%sum = scf.for %j = %t to %n step %step "
                     "iter_args(%acc = %zero) -> (f32) {\n"
                     "%o = arith.addi %row, %j : index\n" +
                     address("p", "x", "o") +
                     "%v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> "
                     "f32\n%next = arith.addf %acc, %v : f32\n"
                     "scf.yield %next : f32\n}\n"
                     "memref.store %sum, %sh[%t] : memref<256xf32" +
                     workgroup + "\n";
  if (race) // the neighbour may or may not have stored its sum
    text += "%one = arith.constant 1 : index\n%u = arith.xori %t, %one : index"
            "\n%a = memref.load %sh[%u] : memref<256xf32" +
            workgroup +
            "\n%d = arith.addf %sum, %a : f32\n"
            "memref.store %d, %sh[%t] : memref<256xf32" +
            workgroup + "\n";
  text += "} " + threads;
  for (int64_t s = 128; s >= 1; s /= 2)
    text += treeStep(s);
  text += "%c0 = arith.constant 0 : index\n%total = memref.load %sh[%c0] : "
          "memref<256xf32" +
          workgroup + "\n" + address("q", "y", "b") +
          "llvm.store %total, %q {alignment = 4 : i64} : f32, !llvm.ptr\n} " +
          blocks + "return\n}\n";
  return text;
}

std::string test::laneMoments() {
  std::string type = "memref<64xf32" + workgroup;
  std::string text = "func.func @moments(%x: " + pointer + ", %y: " + pointer +
                     ", %scratch: " + pointer + ", %mean: " + type +
                     ", %square: " + type + ") " + launch(1, 64) +
                     "scf.forall (%b) in (1) {\nscf.forall (%t) in (64) {\n" +
                     address("p", "x", "t") +
                     "%v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> "
                     "f32\n%zero = arith.constant 0.0 : f32\n"
                     "memref.store %v, %mean[%t] : " +
                     type + "\nmemref.store %zero, %square[%t] : " + type +
                     "\n} " + threads;
  for (int64_t s = 16; s >= 1; s /= 2) {
    std::string size = std::to_string(s);
    // Of equal counts n: d = m2 - m1, m = m1 + d / 2, q = q1 + q2 + d^2 n / 2.
    text +=
        "scf.forall (%t) in (32) {\n%s = arith.constant " + size +
        " : index\n%half = arith.constant 0.5 : f32\n"
        "%w = arith.constant " +
        std::to_string(16.0 / double(s) / 2) +
        " : f32\n%below = arith.cmpi ult, %t, %s : index\n"
        "scf.if %below {\n%u = arith.addi %s, %t : index\n"
        "%m1 = memref.load %mean[%t] : " +
        type + "\n%m2 = memref.load %mean[%u] : " + type +
        "\n%q1 = memref.load %square[%t] : " + type +
        "\n%q2 = memref.load %square[%u] : " + type +
        "\n%d = arith.subf %m2, %m1 : f32\n"
        "%dh = arith.mulf %d, %half : f32\n"
        "%m = arith.addf %m1, %dh : f32\n%q = arith.addf %q1, %q2 : f32\n"
        "%dd = arith.mulf %d, %d : f32\n%e = arith.mulf %dd, %w : f32\n"
        "%qq = arith.addf %q, %e : f32\nmemref.store %m, %mean[%t] : " +
        type + "\nmemref.store %qq, %square[%t] : " + type +
        "\n}\n} {mapping = [#gpu.thread<x>], ckopt.gpu.lane_step = " + size +
        " : i64}\n";
  }
  // All that memory holds afterwards.
  text += "scf.forall (%t) in (64) {\n%c64 = arith.constant 64 : index\n"
          "%o = arith.addi %t, %c64 : index\n%m = memref.load %mean[%t] : " +
          type + "\n%q = memref.load %square[%t] : " + type + "\n" +
          address("p", "y", "t") + address("r", "y", "o") +
          "llvm.store %m, %p {alignment = 4 : i64} : f32, !llvm.ptr\n"
          "llvm.store %q, %r {alignment = 4 : i64} : f32, !llvm.ptr\n} " +
          threads + "} " + blocks + "return\n}\n";
  return text;
}

std::string test::matmul(int64_t m, int64_t n, int64_t k) {
  std::string tile = "memref<16x16xf32" + workgroup;
  std::string own = "memref<256x1xf32, #gpu.address_space<private>>";
  std::string grid = std::to_string(m / 16 * n / 16);
  auto constant = [](const std::string &name, int64_t value) {
    return "%" + name + " = arith.constant " + std::to_string(value) +
           " : index\n";
  };
  std::string place = "%i = arith.divui %t, %c16 : index\n"
                      "%j = arith.remui %t, %c16 : index\n";
  std::string text =
      "func.func @matmul(%a: " + pointer + ", %b: " + pointer +
      ", %c: " + pointer + ", %scratch: " + pointer + ", %at: " + tile +
      ", %bt: " + tile + ", %acc: " + own + ") " +
      launch(m / 16 * n / 16, 256) + constant("c0", 0) + constant("c1", 1) +
      constant("c16", 16) + constant("K", k) + constant("N", n) +
      constant("tiles", n / 16) +
      "%zero = arith.constant 0.0 : f32\nscf.forall (%block) in (" + grid +
      ") {\n%bm = arith.divui %block, %tiles : index\n"
      "%bn = arith.remui %block, %tiles : index\n"
      "%m0 = arith.muli %bm, %c16 : index\n"
      "%n0 = arith.muli %bn, %c16 : index\nscf.forall (%t) in (256) {\n"
      "memref.store %zero, %acc[%t, %c0] : " +
      own + "\n} " + threads +
      "scf.for %k0 = %c0 to %K step %c16 {\nscf.forall (%t) in (256) {\n" +
      place +
      "%row = arith.addi %m0, %i : index\n%ro = arith.muli %row, %K : index\n"
      "%ak = arith.addi %k0, %j : index\n%ao = arith.addi %ro, %ak : index\n" +
      address("ap", "a", "ao") +
      "%av = llvm.load %ap {alignment = 4 : i64} : !llvm.ptr -> f32\n"
      "memref.store %av, %at[%i, %j] : " +
      tile +
      "\n%bk = arith.addi %k0, %i : index\n%bo = arith.muli %bk, %N : index\n"
      "%col = arith.addi %n0, %j : index\n%bp0 = arith.addi %bo, %col : "
      "index\n" +
      address("bp", "b", "bp0") +
      "%bv = llvm.load %bp {alignment = 4 : i64} : !llvm.ptr -> f32\n"
      "memref.store %bv, %bt[%i, %j] : " +
      tile + "\n} " + threads + "scf.forall (%t) in (256) {\n" + place +
      "%x = memref.load %acc[%t, %c0] : " + own +
      "\n%sum = scf.for %kk = %c0 to %c16 step %c1 iter_args(%y = %x) -> "
      "(f32) {\n%p = memref.load %at[%i, %kk] : " +
      tile + "\n%q = memref.load %bt[%kk, %j] : " + tile +
      "\n%z = math.fma %p, %q, %y : f32\nscf.yield %z : f32\n}\n"
      "memref.store %sum, %acc[%t, %c0] : " +
      own + "\n} " + threads + "}\nscf.forall (%t) in (256) {\n" + place +
      "%row = arith.addi %m0, %i : index\n%ro = arith.muli %row, %N : index\n"
      "%col = arith.addi %n0, %j : index\n%o = arith.addi %ro, %col : index\n" +
      address("cp", "c", "o") + "%r = memref.load %acc[%t, %c0] : " + own +
      "\nllvm.store %r, %cp {alignment = 4 : i64} : f32, !llvm.ptr\n} " +
      threads + "} " + blocks + "return\n}\n";
  return text;
}

std::string test::pointwise(int64_t count) {
  std::string n = std::to_string(count),
              grid = std::to_string((count + 255) / 256);
  return "func.func @pointwise(%x: " + pointer + ", %y: " + pointer +
         ", %add: i64, %scratch: " + pointer + ") " +
         launch((count + 255) / 256, 256) + "scf.forall (%b) in (" + grid +
         ") {\nscf.forall (%t) in (256) {\n%c256 = arith.constant 256 : index\n"
         "%n = arith.constant " +
         n +
         " : index\n%bb = arith.muli %b, %c256 : index\n"
         "%g = arith.addi %bb, %t : index\n"
         "%inside = arith.cmpi ult, %g, %n : index\nscf.if %inside {\n" +
         address("p", "x", "g") + address("q", "y", "g") +
         "%v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> f32\n"
         "%s = arith.sitofp %add : i64 to f32\n"
         "%r = arith.divf %s, %v : f32\n%w = math.sqrt %r : f32\n"
         "llvm.store %w, %q {alignment = 4 : i64} : f32, !llvm.ptr\n}\n} " +
         threads + "} " + blocks + "return\n}\n";
}
