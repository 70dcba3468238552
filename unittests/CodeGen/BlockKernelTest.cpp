//===- BlockKernelTest.cpp - kernels in block form, on the CPU and as PTX -===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tests without a GPU: every order of threads gives the same bits, unless
// threads race, which is detected; shuffles are checked by computing each
// lane's value anew; PTX is deterministic, assembles, and is scanned.
//
//===----------------------------------------------------------------------===//
#include "BlockJit.h"
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/DenseMap.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

static std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float &value : values)
    value = uniform(random);
  return values;
}

static bool sameBits(const std::vector<float> &x, const std::vector<float> &y) {
  return x.size() == y.size() &&
         !memcmp(x.data(), y.data(), x.size() * sizeof(float));
}

//===----------------------------------------------------------------------===//
// On the CPU
//===----------------------------------------------------------------------===//

static std::vector<float> runRowSum(const std::string &text, int64_t rows,
                                    std::vector<float> &x, bool descending) {
  std::vector<float> y(rows);
  BlockJit jit(text);
  jit.run("row_sum", {x.data(), y.data(), nullptr}, descending);
  return y;
}

TEST(BlockKernel, RowSumsInBothOrders) {
  const int64_t rows = 5, columns = 1003;
  std::vector<float> x = randomFloats(rows * columns, 1);
  std::string text = rowSum(rows, columns);
  std::vector<float> up = runRowSum(text, rows, x, false);
  EXPECT_TRUE(sameBits(up, runRowSum(text, rows, x, true)));
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < columns; ++c)
      sum += x[r * columns + c];
    EXPECT_NEAR(up[r], sum, 1e-4);
  }
}

TEST(BlockKernel, RacesShowInTheOrder) {
  const int64_t rows = 2, columns = 600;
  std::vector<float> x = randomFloats(rows * columns, 2);
  std::string text = rowSum(rows, columns, /*race=*/true);
  EXPECT_FALSE(sameBits(runRowSum(text, rows, x, false),
                        runRowSum(text, rows, x, true)));
}

TEST(BlockKernel, ReadsBeforeWritesShowInTheOrder) {
  std::string text = rowSum(2, 600);
  // The first interval stores nothing.
  size_t at = text.find("memref.store"), end = text.find('\n', at);
  text.erase(at, end - at);
  std::vector<float> x = randomFloats(1200, 3);
  EXPECT_FALSE(
      sameBits(runRowSum(text, 2, x, false), runRowSum(text, 2, x, true)));
}

TEST(BlockKernel, ProductsInBothOrders) {
  const int64_t m = 32, n = 48, k = 64;
  std::vector<float> a = randomFloats(m * k, 4), b = randomFloats(k * n, 5);
  std::vector<float> results[2];
  BlockJit jit(matmul(m, n, k));
  for (bool descending : {false, true}) {
    std::vector<float> &c = results[descending];
    c.resize(m * n);
    jit.run("matmul", {a.data(), b.data(), c.data(), nullptr}, descending);
  }
  EXPECT_TRUE(sameBits(results[0], results[1]));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum = std::fma(a[i * k + l], b[l * n + j], sum);
      EXPECT_EQ(results[0][i * n + j], sum);
    }
}

TEST(BlockKernel, ParametersReachTheKernel) {
  const int64_t count = 300;
  std::vector<float> x = randomFloats(count, 6), y(count);
  for (float &value : x)
    value = std::fabs(value) + 1;
  int64_t add = 7;
  BlockJit jit(pointwise(count));
  jit.run("pointwise",
          {x.data(), y.data(), reinterpret_cast<void *>(add), nullptr});
  for (int64_t i = 0; i < count; ++i)
    EXPECT_EQ(y[i], std::sqrt(7.0f / x[i]));
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

namespace {
/// Computes the value in any lane of a merged interval, by following shuffles
/// to the lane that they read.
class LaneEvaluator {
public:
  LaneEvaluator(OpBuilder &b, scf::ForallOp forall) : b(b), forall(forall) {}
  Value at(Value v, Value lane) {
    Operation *op = v.getDefiningOp();
    if (v == forall.getBody()->getArgument(0))
      return lane;
    if (!op || !forall->isProperAncestor(op))
      return v;
    Value &known = memo[{v, lane}];
    if (known)
      return known;
    Value result;
    if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op)) {
      result = at(shuffle.getValue(), other(shuffle, lane));
    } else {
      IRMapping map;
      for (Value operand : op->getOperands())
        map.map(operand, at(operand, lane));
      result = b.clone(*op, map)->getResult(0);
    }
    return memo[{v, lane}] = result;
  }

private:
  /// Lane `lane` + s; itself where there is none.
  Value other(gpu::ShuffleOp shuffle, Value lane) {
    Location loc = shuffle.getLoc();
    EXPECT_EQ(shuffle.getMode(), gpu::ShuffleMode::DOWN);
    Value s = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                         shuffle.getOffset());
    Value sum = arith::AddIOp::create(b, loc, lane, s);
    Value width = arith::ConstantIndexOp::create(b, loc, 32);
    Value inside =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, sum, width);
    return arith::SelectOp::create(b, loc, inside, sum, lane);
  }

  OpBuilder &b;
  scf::ForallOp forall;
  llvm::DenseMap<std::pair<Value, Value>, Value> memo;
};
} // namespace

/// Merges lane steps, then makes the result runnable one thread after another,
/// ascending: lane t reads elements from t on, which no lane before it stores.
static void mergeAndUnshuffle(ModuleOp module) {
  PassManager manager(module.getContext());
  manager.addPass(createMergeLaneStepsPass());
  ASSERT_TRUE(succeeded(manager.run(module)));
  int64_t merged = 0;
  module.walk([&](scf::ForallOp forall) {
    SmallVector<memref::StoreOp> stores;
    bool shuffles = false;
    for (Operation &op : *forall.getBody()) {
      shuffles |= isa<gpu::ShuffleOp>(op);
      if (auto store = dyn_cast<memref::StoreOp>(op))
        stores.push_back(store);
    }
    if (!shuffles)
      return;
    ++merged;
    OpBuilder b(forall.getBody()->getTerminator());
    LaneEvaluator evaluator(b, forall);
    SmallVector<Value> values;
    for (memref::StoreOp store : stores)
      values.push_back(
          evaluator.at(store.getValue(), forall.getBody()->getArgument(0)));
    for (auto [store, value] : llvm::zip(stores, values)) {
      store.getValueMutable().assign(value);
      store->moveBefore(forall.getBody()->getTerminator());
    }
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(*forall.getBody())))
      if (isOpTriviallyDead(&op))
        op.erase();
  });
  EXPECT_EQ(merged, 1);
}

TEST(BlockKernel, ShufflesComputeTheTree) {
  const int64_t rows = 3, columns = 777;
  std::vector<float> x = randomFloats(rows * columns, 7), y(rows);
  std::string text = rowSum(rows, columns);
  std::vector<float> plain = runRowSum(text, rows, x, false);
  BlockJit jit(text, mergeAndUnshuffle);
  jit.run("row_sum", {x.data(), y.data(), nullptr});
  EXPECT_TRUE(sameBits(plain, y));
}

TEST(BlockKernel, ShufflesMoveDoublesInHalves) {
  std::string text = rowSum(1, 500);
  for (size_t at = 0; (at = text.find("f32", at)) != std::string::npos;)
    text.replace(at, 3, "f64");
  std::vector<double> x(500);
  double sums[2], exact = 0;
  for (size_t i = 0; i < x.size(); ++i)
    exact += x[i] = 1.0 / double(i + 1);
  BlockJit plain(text), merged(text, mergeAndUnshuffle);
  plain.run("row_sum", {x.data(), &sums[0], nullptr});
  merged.run("row_sum", {x.data(), &sums[1], nullptr});
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_NEAR(sums[0], exact, 1e-13);
}

TEST(BlockKernel, ShufflesLeaveMemoryAsTheTreeDoes) {
  std::vector<float> x = randomFloats(64, 8), plain(128), merged(128);
  std::string text = laneMoments();
  BlockJit first(text), second(text, mergeAndUnshuffle);
  first.run("moments", {x.data(), plain.data(), nullptr});
  second.run("moments", {x.data(), merged.data(), nullptr});
  EXPECT_TRUE(sameBits(plain, merged));
  double mean = 0, square = 0;
  for (int i = 0; i < 32; ++i)
    mean += x[i] / 32;
  for (int i = 0; i < 32; ++i)
    square += (x[i] - mean) * (x[i] - mean);
  EXPECT_NEAR(plain[0], mean, 1e-6);
  EXPECT_NEAR(plain[64], square, 1e-5);
}

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

/// All kernels above in one module.
static std::string allKernels() {
  return rowSum(3, 1000) + laneMoments() + matmul(32, 32, 32) + pointwise(1000);
}

static PtxModule emit(const std::string &text, unsigned sm) {
  std::unique_ptr<MLIRContext> context = blockContext();
  auto module = parseSourceString<ModuleOp>(text, context.get());
  EXPECT_TRUE(module);
  auto ptx = emitPtx(*module, {sm, false});
  if (ptx)
    return *ptx;
  ADD_FAILURE() << llvm::toString(ptx.takeError());
  return {};
}

TEST(Ptx, SaysWhatALaunchNeeds) {
  PtxModule ptx = emit(allKernels(), 90);
  ASSERT_EQ(ptx.kernels.size(), 4u);
  EXPECT_EQ(ptx.isaMajor * 10 + ptx.isaMinor, 78u);
  EXPECT_EQ(ptx.driverVersion, 11080);
  EXPECT_EQ(emit(pointwise(5), 80).driverVersion, 11000);
  const PtxKernel &moments = ptx.kernels[1], &point = ptx.kernels[3];
  EXPECT_EQ(moments.symbol, "moments");
  EXPECT_EQ(moments.sharedBytes, 512);
  EXPECT_EQ(moments.shuffledTrees, 1);
  EXPECT_EQ(moments.plainTrees, 0);
  EXPECT_EQ(point.grid, 4);
  EXPECT_EQ(point.block, 256);
  using P = PtxKernel::Parameter;
  EXPECT_EQ(point.parameters,
            (std::vector<P>{P::Pointer, P::Pointer, P::Scalar, P::Pointer}));
}

TEST(Ptx, DependsOnNothingButTheKernels) {
  std::string text = allKernels();
  const char *home = getenv("CUDA_HOME");
  std::string saved = home ? home : "";
  unsetenv("CUDA_HOME");
  std::string bare = emit(text, 80).text;
  EXPECT_FALSE(bare.empty());
  for (const char *folder : {"/usr/local/cuda", "/nonexistent"}) {
    setenv("CUDA_HOME", folder, 1);
    EXPECT_EQ(emit(text, 80).text, bare) << folder;
  }
  if (home)
    setenv("CUDA_HOME", saved.c_str(), 1);
  else
    unsetenv("CUDA_HOME");
}

TEST(Ptx, Assembles) {
  auto ptxas = findPtxas();
  if (!ptxas)
    GTEST_SKIP() << "ptxas is not installed: no PTX is assembled";
  for (unsigned sm : {80u, 90u}) {
    auto kernels = assemble(emit(allKernels(), sm).text, sm, *ptxas);
    ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
    ASSERT_EQ(kernels->size(), 4u);
    for (const AssembledKernel &kernel : *kernels) {
      EXPECT_GT(kernel.registers, 0) << kernel.symbol;
      EXPECT_EQ(kernel.spillStoreBytes + kernel.spillLoadBytes, 0);
      EXPECT_EQ(kernel.stackBytes, 0) << kernel.symbol;
      EXPECT_EQ(kernel.sharedBytes, kernel.symbol == "row_sum"   ? 1024
                                    : kernel.symbol == "moments" ? 512
                                    : kernel.symbol == "matmul"  ? 2048
                                                                 : 0);
    }
  }
  auto wrong = assemble("no PTX", 80, *ptxas);
  EXPECT_FALSE(bool(wrong));
  llvm::consumeError(wrong.takeError());
}

TEST(Ptx, ScanFindsWhatMustNotBe) {
  auto reasons = [](const std::string &line, bool wide = false) {
    std::string text = ".visible .entry k(\n)\n{\n" + line + "\n}\n";
    std::vector<std::string> f64;
    if (wide)
      f64.push_back("k");
    return scanPtx(text, f64);
  };
  for (const char *bad :
       {"\tadd.f32 \t%f1, %f2, %f3;", "\tadd.ftz.f32 \t%f1, %f2, %f3;",
        "\t@%p1 mul.f32 \t%f1, %f2, %f3;", "\tfma.rz.f32 \t%f1, %f2, %f3, %f4;",
        "\tsqrt.approx.f32 \t%f1, %f2;", "\tdiv.full.f32 \t%f1, %f2, %f3;",
        "\tex2.approx.ftz.f32 \t%f1, %f2;", "\tcvt.f32.s32 \t%f1, %r1;",
        "\tcvt.f16.f32 \t%h1, %f1;", "\tld.local.b32 \t%r1, [%rd1];",
        "\t.local .align 16 .b8 \t__local_depot0[16];",
        "\tatom.global.add.f32 \t%f1, [%rd1], %f2;",
        "\tred.global.add.f32 \t[%rd1], %f2;",
        "\tadd.rn.f64 \t%fd1, %fd2, %fd3;",
        ".extern .func (.param .b32 f) __nv_expf", "\tcall.uni malloc, (%rd1);",
        ".shared .b8 __dynamic_shmem__0[1];"}) {
    auto found = reasons(bad);
    EXPECT_FALSE(found.empty()) << bad;
    if (!found.empty()) {
      EXPECT_EQ(found[0].kernel, "k");
      EXPECT_EQ(found[0].line, 4u);
    }
  }
  for (const char *good :
       {"\tadd.rn.f32 \t%f1, %f2, %f3;", "\tfma.rn.ftz.f32 \t%f1, %f2;",
        "\tcvt.rn.f32.s32 \t%f1, %r1;", "\tcvt.f32.f16 \t%f1, %h1;",
        "\tcvt.rzi.s32.f32 \t%r1, %f1;", "\tadd.s32 \t%r1, %r2, %r3;",
        "\tsetp.lt.f32 \t%p1, %f1, %f2;", "\tselp.f32 \t%f1, %f2, %f3, %p1;",
        "\tcvt.u64.u32 \t%rd1, %r1;", "\tmul.wide.u32 \t%rd1, %r1, 4;",
        "\tabs.f32 \t%f1, %f2;", "\t// add.f32 %f1",
        ".extern .shared .align 16 .b8 s[];",
        "\tst.shared.b32 \t[__wg_malloc_s0_0], %r1;"})
    EXPECT_TRUE(reasons(good).empty()) << good;
  EXPECT_TRUE(reasons("\tadd.rn.f64 \t%fd1, %fd2, %fd3;", true).empty());
}

// Two approximations may be in kernels that are named; nothing else.
TEST(Ptx, ScanAllowsNamedApproximations) {
  auto isFound = [](const std::string &instruction, const std::string &in) {
    std::string text =
        ".visible .entry k(\n)\n{\n\t" + instruction + " \t%f1, %f2;\n}\n";
    return !scanPtx(text, {}, /*tf32=*/false, {in}).empty();
  };
  for (const char *known : {"ex2.approx.ftz.f32", "rcp.approx.ftz.f32"}) {
    EXPECT_FALSE(isFound(known, "k")) << known;
    EXPECT_TRUE(isFound(known, "other")) << known;
  }
  for (const char *bad :
       {"ex2.approx.f32", "tanh.approx.f32", "lg2.approx.ftz.f32",
        "sqrt.approx.ftz.f32", "rcp.approx.ftz.f64", "div.full.f32"})
    EXPECT_TRUE(isFound(bad, "k")) << bad;
}

// A kernel that begins early touches nothing before it waits, and cannot leave
// the wait out.
TEST(Ptx, ScanFindsWhatComesBeforeTheWait) {
  auto isFound = [](const std::string &before, const std::string &wait,
                    bool programmatic = true) {
    std::string text = ".visible .entry k(\n)\n{\n" + before + "\n" + wait +
                       "\n\tst.global.b32 \t[%rd1], %r1;\n\tret;\n}\n";
    return !scanPtx(text, {}, /*tf32=*/false, {}, programmatic).empty();
  };
  const std::string wait = "\tgriddepcontrol.wait;";
  for (const char *bad :
       {"\tld.global.b32 \t%r1, [%rd1];", "\tst.global.b32 \t[%rd1], %r1;",
        "\tld.b32 \t%r1, [%rd1];",
        "\tcp.async.ca.shared.global [%r1], [%rd1], 4;", "\t@%p1 bra \t$L1;",
        "\tbra.uni \t$L1;", "$L1:", "\tret;"}) {
    EXPECT_TRUE(isFound(bad, wait)) << bad;
    EXPECT_FALSE(isFound(bad, wait, /*programmatic=*/false)) << bad;
  }
  for (const char *good :
       {"\tld.param.b64 \t%rd1, [k_param_0];",
        "\tgriddepcontrol.launch_dependents;", "\tmov.u32 \t%r1, %tid.x;"}) {
    EXPECT_FALSE(isFound(good, wait)) << good;
    EXPECT_TRUE(isFound(good, "")) << good;
  }
}

TEST(Ptx, RefusesUnknownTargets) {
  std::unique_ptr<MLIRContext> context = blockContext();
  auto module = parseSourceString<ModuleOp>(pointwise(4), context.get());
  auto ptx = emitPtx(*module, {75, false});
  ASSERT_FALSE(bool(ptx));
  EXPECT_NE(llvm::toString(ptx.takeError()).find("sm_75"), std::string::npos);
}
