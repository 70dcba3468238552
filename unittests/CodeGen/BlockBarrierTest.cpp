//===- BlockBarrierTest.cpp - no barrier that matters is missing ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A missing barrier is only noticed on a GPU, and there by chance. So random
// kernels of intervals, uniform accesses, loops and branches are lowered, and
// random paths through the result are examined: between two accesses of the
// same memory by different intervals, one of them a store, lies a barrier.
//
//===----------------------------------------------------------------------===//
#include "BlockJit.h"
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {

constexpr int kBuffers = 2; // and global memory

/// Writes a random kernel of 64 threads.
class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}
  std::string kernel() {
    const std::string buffer = "memref<64xf32, #gpu.address_space<workgroup>>";
    std::string arguments = "%g: !llvm.ptr";
    for (int i = 0; i < kBuffers; ++i)
      arguments += ", %s" + std::to_string(i) + ": " + buffer;
    return "func.func @k(" + arguments +
           ") attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 64 : "
           "i64} {\n%one = arith.constant 1.0 : f32\n"
           "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
           "%yes = arith.constant true\nscf.forall (%b) in (1) {\n" +
           items(2) + "} {mapping = [#gpu.block<x>]}\nreturn\n}\n";
  }

private:
  int pick(int count) { return int(random() % unsigned(count)); }

  /// A load or store, at `index` of a buffer or in global memory.
  std::string access(const std::string &index, bool canStore) {
    int where = pick(kBuffers + 1);
    bool stores = canStore && pick(2);
    std::string name = "%v" + std::to_string(next++);
    if (where == kBuffers)
      return stores ? "llvm.store %one, %g {alignment = 4 : i64} : f32, "
                      "!llvm.ptr\n"
                    : name + " = llvm.load %g {alignment = 4 : i64} : "
                             "!llvm.ptr -> f32\n";
    std::string place = "%s" + std::to_string(where) + "[" + index +
                        "] : memref<64xf32, #gpu.address_space<workgroup>>\n";
    return stores ? "memref.store %one, " + place
                  : name + " = memref.load " + place;
  }

  std::string items(int depth) {
    std::string text;
    for (int n = 1 + pick(4); n > 0; --n)
      text += item(depth);
    return text;
  }

  std::string item(int depth) {
    int kind = pick(depth ? 6 : 4);
    std::string name = std::to_string(next++);
    if (kind == 4)
      return "scf.for %i" + name + " = %c0 to %c1 step %c1 {\n" +
             items(depth - 1) + "}\n";
    if (kind == 5)
      return "scf.if %yes {\n" + items(depth - 1) + "} else {\n" +
             items(depth - 1) + "}\n";
    if (kind == 3)
      return access("%c0", true);
    return "scf.forall (%t) in (" + std::string(pick(2) ? "64" : "32") +
           ") {\n" + access("%t", true) + "} {mapping = [#gpu.thread<x>]}\n";
  }

  std::mt19937 random;
  int next = 0;
};

struct Event {
  int memory; ///< -1: a barrier
  bool stores;
};

/// Random paths through a lowered kernel.
class Walker {
public:
  Walker(gpu::GPUFuncOp function, unsigned seed)
      : function(function), random(seed) {}
  std::vector<Event> path() {
    events.clear();
    walk(function.getBody().front());
    return events;
  }

private:
  void walk(Block &block) {
    for (Operation &op : block)
      visit(&op);
  }
  void visit(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (unsigned n = random() % 4; n > 0; --n)
        walk(*loop.getBody());
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      // Some threads pass every guard of threads.
      bool ofThreads = branch.getCondition().getDefiningOp<arith::CmpIOp>();
      if (ofThreads || random() % 2)
        walk(*branch.thenBlock());
      else if (branch.elseBlock())
        walk(*branch.elseBlock());
    } else if (isa<gpu::BarrierOp>(op)) {
      events.push_back({-1, false});
    } else if (isa<LLVM::LoadOp, LLVM::StoreOp>(op)) {
      events.push_back({kBuffers, isa<LLVM::StoreOp>(op)});
    } else if (isa<memref::LoadOp, memref::StoreOp>(op)) {
      bool stores = isa<memref::StoreOp>(op);
      auto buffer = cast<BlockArgument>(op->getOperand(stores ? 1 : 0));
      events.push_back({int(buffer.getArgNumber()) - 1, stores});
    }
  }

  gpu::GPUFuncOp function;
  std::mt19937 random;
  std::vector<Event> events;
};

/// Whether the path has two accesses that conflict without a barrier between.
/// Every interval of the generator has one access, so all are of different
/// ones.
bool hasRace(const std::vector<Event> &path) {
  for (size_t i = 0; i < path.size(); ++i)
    for (size_t j = i + 1; j < path.size() && path[j].memory >= 0; ++j)
      if (path[i].memory == path[j].memory &&
          (path[i].stores || path[j].stores))
        return true;
  return false;
}

bool hasRace(gpu::GPUFuncOp function, unsigned seed) {
  Walker walker(function, seed);
  for (int n = 0; n < 40; ++n)
    if (hasRace(walker.path()))
      return true;
  return false;
}

TEST(BlockBarrier, EveryConflictHasOne) {
  std::unique_ptr<MLIRContext> context = blockContext();
  int64_t barriers = 0, accesses = 0, racesWithout = 0;
  const int kernels = 300;
  for (int seed = 0; seed < kernels; ++seed) {
    std::string text = Generator(unsigned(seed)).kernel();
    auto module = parseSourceString<ModuleOp>(text, context.get());
    ASSERT_TRUE(module) << text;
    PassManager manager(context.get());
    manager.addPass(createBlockToGPUPass());
    ASSERT_TRUE(succeeded(manager.run(*module))) << text;
    module->walk([&](gpu::GPUFuncOp function) {
      EXPECT_FALSE(hasRace(function, unsigned(seed))) << text;
      SmallVector<Operation *> found;
      function->walk([&](Operation *op) {
        if (isa<gpu::BarrierOp>(op))
          found.push_back(op);
        accesses +=
            isa<LLVM::LoadOp, LLVM::StoreOp, memref::LoadOp, memref::StoreOp>(
                op);
      });
      barriers += int64_t(found.size());
      for (Operation *barrier : found)
        barrier->erase();
      racesWithout += hasRace(function, unsigned(seed));
    });
  }
  // The test can fail, and barriers are not simply everywhere.
  EXPECT_GT(racesWithout, kernels / 2);
  EXPECT_LT(barriers, accesses);
}

} // namespace
