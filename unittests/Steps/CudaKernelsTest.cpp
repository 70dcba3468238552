//===- CudaKernelsTest.cpp - kernels of whole networks in block form ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every kernel of the golden networks, of ResNet-50 and of GPT-2 small
// (forward, backward, optimizer, dropout), as the last form before threads:
// threads and blocks ascending and descending give the same bits; what only
// computes or moves elements, and approximates nothing, gives the CPU's bits;
// each element of all else is within 1e-5 of the interpreter's, or of the
// largest element of the result, or, for sums of n elements that cancel, within
// 1e-6 * sqrt(n) of the largest operand. Each operand and result ends at an
// inaccessible page, or less than 64 bytes of a pattern before it; operands and
// patterns stay as they are. The PTX of each runs in the interpreter of
// test/lib/CudaStandin/Ptx, to the bits of the block form (products on tensor
// cores: within the same tolerance).
//
// The reduced networks (test/data/models/reduced) have few elements, chosen so
// that what follows occurs, which is checked:
//   odd    accesses of one element and of 16 bytes, last blocks that are not
//          full (guards), tiles and slices of k that are not full, windows that
//          leave the image on one side, rows that are no multiple of a vector,
//          sums over k in parts that are not equal
//   even   the same without remainders; tiles of 128; sums over k in parts
//
//===----------------------------------------------------------------------===//
#include "CudaKernels.h"
#include "Harness.h"
#include "KernelJit.h"
#include "ckopt/Compiler/Phases.h"

using namespace ckopt;
using namespace ckopt::test;
using reference::Tensor;

namespace {

/// The features that a case must have.
struct Wanted {
  std::vector<std::string> kinds = {"elementwise", "reduction", "library"};
  bool wide = false, narrow = false;
  bool whole = false, partial = false; ///< blocks
  bool split = false, large = false;   ///< products
  bool dropout = false;
  int64_t zeros = 0; ///< kernels that make zeros
};

struct Case {
  Case(const std::string &name, const std::string &path,
       const std::string &loss, const Wanted &wanted = {})
      : name(name), path(path), loss(loss), wanted(wanted) {
    optimizer.kind = "adamw";
  }
  std::string name, path, loss;
  Wanted wanted;
  OptimizerSettings optimizer;
  runtime::ProductPrecision precision = runtime::ProductPrecision::F32;
  std::string storage = "f32";
  int64_t chunks = 0; ///< StepOptions::chunkRows
  /// Others have its kernels for other shapes, or its shapes for others;
  /// test/Kernels has each kind of kernel.
  bool isLong = false;
};
void PrintTo(const Case &param, std::ostream *os) { *os << param.name; }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const GoldenModel &model : goldenModels())
    all.emplace_back(model.name, goldenPath(model.name, "model.onnx"),
                     model.loss);
  // Other updates: of accumulated and of clipped gradients.
  Case sums = all[0], clipped = all[1];
  sums.name += "_accumulated";
  sums.optimizer.accumulate = 2;
  sums.wanted.zeros = 2; // sums start again
  clipped.name += "_clipped";
  clipped.optimizer.kind = "sgd";
  clipped.optimizer.values["momentum"] = 0.9;
  clipped.optimizer.clipNorm = 1;
  all.insert(all.end(), {sums, clipped});
  Wanted odd, even;
  odd.wide = odd.narrow = odd.partial = true;
  even.wide = even.whole = even.split = true;
  auto add = [&](const std::string &name, const Wanted &wanted) {
    all.emplace_back(name, dataPath("models/reduced/" + name + ".onnx"),
                     "cross_entropy", wanted);
  };
  Wanted images = odd, text = odd, large = even;
  images.split = true;
  add("resnet50_odd", images);
  add("resnet50_even", even);
  text.kinds.insert(text.kinds.end(), {"row", "structured"});
  add("gpt2_odd", text);
  large.large = true;
  large.kinds = text.kinds;
  add("gpt2_even", large);
  // Products on tensor cores, whose operands are rounded.
  auto round = [&](const std::string &name,
                   runtime::ProductPrecision precision) {
    add(name, {});
    all.back().name += "_";
    all.back().name += runtime::productPrecisionName(precision);
    all.back().precision = precision;
  };
  round("resnet50_odd", runtime::ProductPrecision::TF32);
  round("gpt2_even", runtime::ProductPrecision::TF32);
  // A head in chunks of rows, whose weight's gradient grows by products.
  for (auto precision :
       {runtime::ProductPrecision::F32, runtime::ProductPrecision::TF32}) {
    round("gpt2_odd", precision);
    all.back().name += "_chunks";
    all.back().chunks = 40;
  }
  text.dropout = true;
  add("gpt2_dropout", text);
  // Tensors between products stored in bf16; the odd one of ResNet-50 has only
  // more shapes of the same kernels.
  for (size_t i = 0, count = all.size(); i < count; ++i)
    if (llvm::StringRef(all[i].path).contains("reduced") &&
        all[i].precision == runtime::ProductPrecision::F32 &&
        all[i].name != "resnet50_odd") {
      all.push_back(all[i]);
      all.back().name += "_stored_bf16";
      all.back().storage = "bf16";
    }
  for (Case &one : all)
    one.isLong =
        !llvm::is_contained({"mlp_accumulated", "lenet_clipped",
                             "resnet50_even", "gpt2_odd", "gpt2_even_tf32"},
                            one.name);
  return all;
}

class CudaKernels : public testing::TestWithParam<Case> {};

void expectMet(const KernelCensus &census, const Wanted &wanted) {
  for (const std::string &kind : wanted.kinds)
    EXPECT_TRUE(census.kinds.count(kind)) << "no kernel of kind " << kind;
  EXPECT_GE(census.wide, wanted.wide);
  EXPECT_GE(census.narrow, wanted.narrow);
  EXPECT_GE(census.wholeBlocks, wanted.whole);
  EXPECT_GE(census.partialBlocks, wanted.partial);
  EXPECT_GE(census.splitSums, wanted.split);
  EXPECT_GE(census.largeTiles, wanted.large);
  EXPECT_GE(census.dropouts, wanted.dropout);
  EXPECT_LE(census.zeros, wanted.zeros) << "operands say too little";
}

// Checks each kernel of the planned step on the operands that the step gives
// it.
TEST_P(CudaKernels, GiveWhatTheCpuGives) {
  static std::set<std::string> known; // one text is checked once
  const Case &param = GetParam();
  if (param.isLong)
    CKOPT_SKIP_UNLESS_LONG();
  CompileOptions options = trainingOptions(param.path, param.loss);
  options.step.target = "cuda";
  options.step.optimizer = param.optimizer;
  options.step.remat.search.effort = 0; // any plan will do
  options.step.precision = *parseChoice<Precision>(param.storage);
  options.step.chunkRows = param.chunks;
  Compilation compilation(std::move(options));
  check(compilation.import());
  check(compilation.plan());
  ASSERT_FALSE(HasFailure());
  KernelCensus census =
      checkKernels(compilation.module(), known, param.precision);
  expectMet(census, param.wanted);
  EXPECT_EQ(census.interpreted, census.checked) << "kernels without PTX";
  RecordProperty("checked", int(census.checked));
  std::cout << "  " << census.checked
            << " kernels checked; launches: " << census.wide << " wide, "
            << census.narrow << " narrow; products: " << census.splitSums
            << " in parts, " << census.largeTiles
            << " with large tiles; blocks: " << census.wholeBlocks << " whole, "
            << census.partialBlocks << " not\n";
}

INSTANTIATE_TEST_SUITE_P(All, CudaKernels, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

/// Which elements are kept.
std::vector<bool> maskOf(const std::vector<Tensor> &results) {
  std::vector<bool> mask;
  for (const Tensor &result : results)
    for (double value : result.getReals())
      mask.push_back(value != 0);
  return mask;
}

// The masks themselves, of the CPU and of the block form, for many seeds, steps
// and sites: equal to the bit, and all of them different.
TEST(CudaDropoutMask, IsTheCpus) {
  const int64_t elements = 3 * 19 * 21;
  std::string t = "tensor<3x19x21xf32>";
  std::string text = kernelText(
      "elementwise", "%x: " + t + ", %a: tensor<i64>, %b: tensor<i64>", t,
      "%0 = ckopt.dropout %x, %a, %b {ratio = 0.3 : f64, site = 0 : i64} : (" +
          t + ", tensor<i64>, tensor<i64>) -> " + t + "\n return %0 : " + t +
          "\n");
  KernelJit cpu(text);
  auto up = KernelJit::onDevice(text), down = up->reversed();
  ASSERT_TRUE(cpu.ok() && up->ok() && down->ok());
  auto types = cpu.kernel().getArgumentTypes();
  auto splat = [&](unsigned i, int64_t value) {
    auto type = mlir::cast<mlir::RankedTensorType>(types[i]);
    if (i == 0)
      return Tensor::splat(type, double(value));
    return Tensor(type, std::vector<int64_t>{value});
  };
  std::set<std::vector<bool>> masks;
  for (int64_t seed : {int64_t(0), int64_t(42), int64_t(-1), int64_t(1) << 40})
    for (int64_t step : {int64_t(1), int64_t(2), int64_t(1) << 33})
      for (int64_t site : {0, 1, 7}) {
        KernelOptions options;
        options.scalars = {site};
        std::vector<Tensor> inputs = {splat(0, 1), splat(1, seed),
                                      splat(2, step)};
        std::vector<Tensor> wanted;
        ASSERT_TRUE(succeeded(
            evaluateKernel(cpu.kernel(), inputs, options.scalars, wanted)));
        Failures failures;
        auto mask = maskOf(checkForms({&cpu, up.get(), down.get()}, inputs,
                                      wanted, options, failures));
        auto onDevice = maskOf(checkForms({nullptr, up.get(), down.get()},
                                          inputs, wanted, options, failures));
        EXPECT_EQ(failures, Failures());
        EXPECT_EQ(mask, maskOf(wanted));
        EXPECT_EQ(mask, onDevice);
        auto kept = std::count(mask.begin(), mask.end(), true);
        EXPECT_NEAR(double(kept) / elements, 0.7, 0.06);
        EXPECT_TRUE(masks.insert(mask).second) << "the same mask again";
      }
}

} // namespace
