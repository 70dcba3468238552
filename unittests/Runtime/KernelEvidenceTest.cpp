//===- KernelEvidenceTest.cpp - kernels by what sweeps found --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LibrarySweep compares the kernels; here are made-up rows, so that what they
// decide can be seen on every CPU.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Cpu/KernelEvidence.h"
#include "PrimitiveFixture.h"

#include <functional>

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

PrimitiveDesc product(int64_t m, int64_t n, int64_t k) {
  PrimitiveDesc desc;
  MatMulDesc &d = desc.matmul;
  d.m = m, d.n = n, d.k = k;
  d.aRow = k, d.bRow = d.cRow = n;
  d.aCol = d.bCol = d.cCol = 1;
  desc.form = LibraryForm::InPlace;
  return desc;
}

/// A weight gradient of windows of 3, one step of padding around.
PrimitiveDesc gradient(int64_t rank, int64_t extent, int64_t stride,
                       DType dtype) {
  PrimitiveDesc desc;
  desc.kind = PrimitiveKind::ConvWeightGrad;
  desc.dtype = dtype;
  ConvDesc &c = desc.conv;
  c.rank = rank, c.batch = 2, c.inChannels = c.outChannels = 16;
  for (int64_t d = 0; d < rank; ++d) {
    c.in[d] = extent, c.out[d] = (extent - 1) / stride + 1;
    c.kernel[d] = 3, c.strides[d] = stride;
    c.padsLo[d] = c.padsHi[d] = 1;
  }
  return desc;
}

bool has(const PrimitiveDesc &desc, std::string_view trait) {
  auto traits = traitsOf(desc);
  return std::find(traits.begin(), traits.end(), trait) != traits.end();
}

/// Evidence by a function; notes what it was asked about.
class Says final : public KernelEvidence {
public:
  using Answer = std::function<std::optional<Finding>(std::string_view)>;
  explicit Says(Answer answer) : answer(std::move(answer)) {}
  std::optional<Finding> find(const PrimitiveDesc &,
                              std::string_view kernel) const override {
    asked.emplace_back(kernel);
    return answer(kernel);
  }
  mutable std::vector<std::string> asked;

private:
  Answer answer;
};

std::string made(const PrimitiveDesc &desc, const KernelEvidence &evidence) {
  std::string error;
  auto primitive = createPrimitive(desc, 2, evidence, error);
  return primitive ? primitive->implementation() : error;
}

} // namespace

TEST(KernelEvidence, TraitsOfShapes) {
  EXPECT_TRUE(has(gradient(1, 1, 2, DType::F32), "blind"));
  EXPECT_TRUE(has(gradient(2, 1, 1, DType::F32), "blind"));
  EXPECT_FALSE(has(gradient(2, 8, 2, DType::F32), "blind"));
  EXPECT_TRUE(has(gradient(2, 8, 2, DType::F32), "strided"));
  EXPECT_TRUE(has(gradient(3, 8, 1, DType::F32), "rank3"));
  EXPECT_TRUE(has(product(7, 9, 63), "long-tail"));
  EXPECT_FALSE(has(product(7, 9, 64), "long-tail"));
}

TEST(KernelEvidence, RowsVouchForTheirTraitsAlone) {
  EvidenceTable table({{"9.0", "SET", "weight-gradient", "bf16", "jit other",
                        "rank2 blind", "two shapes"},
                       {"9.0", "SET", "matmul", "f32", "*", "", "a million"}},
                      "9.0", "SET");
  auto source = [&](const PrimitiveDesc &desc, std::string_view kernel) {
    auto found = table.find(desc, kernel);
    return found ? found->source : "";
  };
  PrimitiveDesc flat = gradient(2, 1, 1, DType::BF16);
  EXPECT_EQ(source(flat, "jit"), "two shapes");
  EXPECT_EQ(source(flat, "other"), "two shapes");
  EXPECT_EQ(source(flat, "jit:other"), "") << "another kernel";
  EXPECT_EQ(source(gradient(2, 1, 1, DType::F32), "jit"), "");
  EXPECT_EQ(source(gradient(3, 1, 1, DType::BF16), "jit"), "") << "rank 3";
  EXPECT_EQ(source(gradient(2, 1, 2, DType::BF16), "jit"), "") << "strided";
  EXPECT_EQ(source(product(4, 4, 4), "any"), "a million");
  EXPECT_EQ(source(product(4, 4, 63), "any"), "") << "a trait that it lacks";
  EvidenceTable elsewhere({{"9.0", "SET", "matmul", "f32", "*", "", ""}}, "9.0",
                          "LARGER_SET");
  EXPECT_FALSE(elsewhere.find(product(4, 4, 4), "any"));
  EXPECT_TRUE(table.find(flat, "jit")->zeroesPad);
}

// What no row vouches for is computed by our own code in f32, and refused in
// halves, so that a step computes it in f32.
TEST(KernelEvidence, NobodyVouches) {
  Says nothing([](auto) { return std::nullopt; });
  EXPECT_EQ(made(product(4, 5, 6), nothing), "OpenBLAS gemm");
  EXPECT_EQ(made(gradient(3, 4, 2, DType::F32), nothing), "im2col + sgemm");
  EXPECT_FALSE(nothing.asked.empty());
  std::string refused = made(gradient(2, 8, 2, DType::BF16), nothing);
  EXPECT_NE(refused.find("oneDNN "), refused.npos) << refused;
  EXPECT_EQ(refused.find("right for"), refused.npos) << refused;
}

TEST(KernelEvidence, TheNextKernelIsTaken) {
  Says last([&](std::string_view) -> std::optional<KernelEvidence::Finding> {
    if (last.asked.size() < 2)
      return std::nullopt;
    return KernelEvidence::Finding{"the second"};
  });
  std::string name = made(gradient(2, 8, 1, DType::F32), last);
  ASSERT_EQ(last.asked.size(), 2u);
  EXPECT_NE(name.find(last.asked[1]), name.npos) << name;
  EXPECT_NE(name.find("right for the second"), name.npos) << name;
}

// The rows of this library and CPU vouch for what networks are made of, in the
// order that steps put activations.
TEST(KernelEvidence, CommonShapesHaveLibraryKernels) {
  std::string error;
  for (PrimitiveDesc desc :
       {product(64, 48, 96), gradient(2, 16, 1, DType::F32),
        gradient(2, 16, 2, DType::F32)}) {
    desc.conv.channelsLast = desc.conv.weightsLast = true;
    auto primitive = Primitive::create(desc, 2, error);
    ASSERT_TRUE(primitive) << error;
    EXPECT_NE(primitive->implementation().find("right for"), std::string::npos)
        << primitive->implementation() << " on " << dnnlInstructionSet();
  }
}

// A scratchpad that is to be zeroed is, by whatever stood there.
TEST(KernelEvidence, ZeroesTheScratchpad) {
  PrimitiveDesc desc = gradient(2, 16, 1, DType::F32);
  int64_t size = 16 * 16 * 9, points = 2 * 16 * 16 * 16;
  auto x = values<float>(points, 1), dy = values<float>(points, 2);
  auto untouched = [&](bool zeroes) {
    Says evidence(
        [&](auto) { return KernelEvidence::Finding{"a test", zeroes}; });
    std::string error;
    auto primitive = createPrimitive(desc, 1, evidence, error);
    std::vector<unsigned char> storage(size_t(primitive->workspaceBytes()) + 64,
                                       0xFF);
    auto address = reinterpret_cast<uintptr_t>(storage.data());
    std::vector<float> result(size_t(size), 0);
    void *args[] = {x.data(), dy.data(), result.data()};
    EXPECT_TRUE(primitive->execute(
        args, reinterpret_cast<void *>((address + 63) / 64 * 64), error));
    return std::count(storage.begin(), storage.end(), 0xFF);
  };
  EXPECT_LT(untouched(true), untouched(false));
}
