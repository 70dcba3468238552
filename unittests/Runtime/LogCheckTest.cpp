//===- LogCheckTest.cpp - a device's log against the plan -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "../../test/lib/CudaStandin/LogCheck.h"
#include "CudaLibraryFixture.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

class LogCheck : public Cuda {
protected:
  std::string runAndLog(bool pattern) {
    inChild({}, [&] {
      OnDevice on(deviceManifest(), pattern);
      ASSERT_EQ(ckrt_init_parameters(on.session, 0), CKRT_OK);
      for (const char *function : {"eval", "step", "eval", "eval", "step"})
        ASSERT_EQ(ckrt_run(on.session, function), CKRT_OK);
      on.loss();
    });
    return log();
  }
  std::string check(const std::string &text, bool pattern = false) {
    return standin::checkLog(deviceManifest(), text, pattern, {}, facts);
  }
  static std::string replaced(std::string text, const std::string &what,
                              const std::string &by) {
    size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), by);
  }
  standin::LogFacts facts;
};

} // namespace

TEST_F(LogCheck, AcceptsWhatTheTableSays) {
  EXPECT_EQ(check(runAndLog(false)), "");
  // "eval" begins like "step": the launches that follow tell the runs apart.
  EXPECT_EQ(facts.runs, 5);
  EXPECT_EQ(facts.launches, 2 + 3 + 2 + 2 + 3);
  EXPECT_EQ(facts.copies, 3); // the constant, the parameter, the loss
  std::string text = runAndLog(true);
  EXPECT_EQ(check(text, true), "");
  EXPECT_NE(check(text, false), "") << "blocks of the pattern are no tensors";
}

TEST_F(LogCheck, SeesWhatItDoesNotSay) {
  std::string good = runAndLog(false);
  auto expect = [&](const std::string &text, const char *reason) {
    std::string wrong = check(text);
    EXPECT_NE(wrong.find(reason), std::string::npos) << wrong;
  };
  expect(replaced(good, "execute k_sum D1+384", "execute k_sum D1+448"),
         "no function goes on with this launch");
  expect(replaced(good, "execute k_axpy D1+0 D1+128 D1+256 D1+384 4",
                  "execute k_axpy D1+0 D1+128 D1+256 D1+384 5"),
         "no function goes on");
  expect(replaced(good, "execute k_sum D1+384 D1+512 4 D1+704\n", ""),
         "no function goes on");
  size_t last = good.rfind("execute k_sum");
  expect(good.substr(0, last) + "end\n", "stops in the middle");
  expect(replaced(good, "cuMemAlloc 768", "cuMemAlloc 1024"),
         "not the arena's");
  expect(replaced(good, "cuModuleGetFunction", "cuMemAlloc 768\ncuModule"),
         "second allocation");
  expect(replaced(good, "D1+256 pageable 16", "D1+256 pageable 20"),
         "no tensor's");
  expect(replaced(good, "D1+256 pageable 16", "? pageable 16"),
         "outside of the arena");
  expect(replaced(good, "end\n", ""), "no end");
  expect("VIOLATION x\n" + good, "refused");
  expect("", "no arena");
}

// A product with two batch dimensions that are no single one runs once for each
// of the outer; before all runs each product runs once, and one of the same
// extents as another is no first call.
TEST_F(CudaLibrary, TheLogOfProductsInBatches) {
  MatMulDesc d; // [B, T, H, D] times [B, T, H, D] transposed
  d.m = 4, d.n = 4, d.k = 3;
  d.batch[0] = 2, d.batch[1] = 5;
  d.aBatch[0] = d.bBatch[0] = 4 * 5 * 3, d.aBatch[1] = d.bBatch[1] = 3;
  d.aRow = 15, d.aCol = 1, d.bRow = 1, d.bCol = 15;
  d.cBatch[0] = 80, d.cBatch[1] = 16, d.cRow = 4, d.cCol = 1;
  Manifest m = manifestOf(matmul(d));
  m.primitives.push_back(matmul(plain(4, 4, 3)));
  CallInfo call = m.calls[0];
  call.launches[0].primitive = 1;
  m.calls.insert(m.calls.begin(), call);
  inChild(libraries(), [&] {
    OnDevice on(m);
    ASSERT_EQ(on.status, CKRT_OK) << lastError();
    for (int i = 0; i < 2; ++i)
      ASSERT_EQ(ckrt_run(on.session, "step"), CKRT_OK);
    ASSERT_EQ(ckrt_synchronize(on.session), CKRT_OK);
  });
  std::string good = log();
  EXPECT_EQ(count("first cublasLtMatmul"), 1);
  EXPECT_EQ(count("execute cublasLtMatmul"), 2 + 3 + 3);
  standin::LogFacts facts;
  EXPECT_EQ(standin::checkLog(m, good, false, {}, facts), "");
  EXPECT_EQ(facts.runs, 2);
  EXPECT_EQ(facts.launches, 2 + 2);
  const std::string line = "execute cublasLtMatmul\n";
  auto expect = [&](size_t at, const std::string &by, const char *reason) {
    ASSERT_NE(at, std::string::npos);
    std::string text = good;
    text.replace(at, line.size(), by);
    std::string wrong = standin::checkLog(m, text, false, {}, facts);
    EXPECT_NE(wrong.find(reason), std::string::npos) << wrong;
  };
  expect(good.rfind(line), "", "stops in the middle");
  expect(good.rfind(line), line + line, "stops in the middle");
  expect(good.rfind(line), "first cublasLtMatmul\n", "did not run once before");
  expect(good.find(line), "", "stops in the middle");
  expect(good.find(line), "execute cudnnBackendExecute\n",
         "did not run once before");
}
