//===- LibraryTableTest.cpp - which library runs what ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/LibraryTable.h"
#include "PrimitiveFixture.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

PrimitiveDesc product(int64_t m, int64_t n, int64_t k) {
  PrimitiveDesc desc;
  desc.matmul.m = m, desc.matmul.n = n, desc.matmul.k = k;
  desc.matmul.aRow = k, desc.matmul.bRow = n, desc.matmul.cRow = n;
  desc.matmul.aCol = desc.matmul.bCol = desc.matmul.cCol = 1;
  return desc;
}

PrimitiveDesc pointwise(PrimitiveKind kind, int64_t in, int64_t out,
                        int64_t side, int64_t batch = 8) {
  PrimitiveDesc desc;
  desc.kind = kind;
  desc.conv.batch = batch;
  desc.conv.inChannels = in, desc.conv.outChannels = out;
  for (int d = 0; d < 2; ++d)
    desc.conv.in[d] = desc.conv.out[d] = side;
  desc.conv.channelsLast = true;
  return desc;
}

LibraryForm builtIn(const PrimitiveDesc &desc) {
  return builtInLibraryTable("amx").formOf(desc);
}

using Kind = PrimitiveKind;
using Form = LibraryForm;

} // namespace

/// Right operands with a pitch of pages are packed where that pays.
TEST(LibraryTable, PacksPitchesOfPages) {
  EXPECT_EQ(builtIn(product(788, 3072, 768)), Form::Packed);
  EXPECT_EQ(builtIn(product(788, 768, 3072)), Form::InPlace);
  EXPECT_EQ(builtIn(product(255, 3072, 768)), Form::InPlace);
  EXPECT_EQ(builtIn(product(256, 1024, 63)), Form::InPlace);
  EXPECT_EQ(builtIn(product(256, 1024, 64)), Form::Packed);
  EXPECT_EQ(builtIn(product(512, 1 << 17, 64)), Form::Packed);
  EXPECT_EQ(builtIn(product(512, 1 << 17, 65)), Form::InPlace);
  PrimitiveDesc desc = product(788, 3072, 768);
  desc.dtype = DType::BF16;
  EXPECT_EQ(builtIn(desc), Form::InPlace);
  desc.dtype = DType::F64;
  EXPECT_EQ(builtIn(desc), Form::Default);
  desc = product(788, 3072, 768);
  desc.matmul.batch[1] = 2;
  desc.matmul.aBatch[1] = desc.matmul.bBatch[1] = desc.matmul.cBatch[1] = 1
                                                                          << 22;
  EXPECT_EQ(builtIn(desc), Form::InPlace);
  // A column-major result is the product of the transposes: its right operand
  // is the left one of the descriptor.
  desc = product(3072, 788, 768);
  desc.matmul.aRow = 1, desc.matmul.aCol = 3072;
  desc.matmul.bRow = 1, desc.matmul.bCol = 768;
  desc.matmul.cRow = 1, desc.matmul.cCol = 3072;
  EXPECT_EQ(builtIn(desc), Form::Packed);
}

/// Pointwise convolutions are products where these are faster, and then packed
/// where products are.
TEST(LibraryTable, ConvolutionsThatAreProducts) {
  EXPECT_EQ(builtIn(pointwise(Kind::ConvForward, 256, 64, 56)),
            Form::Convolution);
  EXPECT_EQ(builtIn(pointwise(Kind::ConvForward, 512, 512, 7)), Form::InPlace);
  EXPECT_EQ(builtIn(pointwise(Kind::ConvForward, 511, 512, 7)),
            Form::Convolution);
  EXPECT_EQ(builtIn(pointwise(Kind::ConvInputGrad, 64, 256, 56)),
            Form::InPlace);
  EXPECT_EQ(builtIn(pointwise(Kind::ConvInputGrad, 256, 64, 56)),
            Form::Convolution);
  EXPECT_EQ(builtIn(pointwise(Kind::ConvWeightGrad, 20, 21, 56)),
            Form::InPlace);
  EXPECT_EQ(builtIn(pointwise(Kind::ConvWeightGrad, 19, 21, 56)),
            Form::Convolution);
  EXPECT_EQ(builtIn(pointwise(Kind::ConvWeightGrad, 2048, 512, 7)),
            Form::Packed);
  EXPECT_EQ(builtIn(pointwise(Kind::ConvInputGrad, 2048, 512, 7)),
            Form::Packed);
  PrimitiveDesc strided = pointwise(Kind::ConvForward, 512, 512, 7);
  strided.conv.strides[0] = 2;
  strided.conv.out[0] = 4;
  EXPECT_EQ(builtIn(strided), Form::Default);
}

/// The first rule that matches wins; what none decides, the base does.
TEST(LibraryTable, RulesStandBeforeTheirBase) {
  LibraryTable table;
  table.base = &builtInLibraryTable("");
  table.rules.push_back({Kind::MatMul,
                         DType::F32,
                         {{LibraryField::M, 788, 788}},
                         Form::OpenBlas});
  table.rules.push_back(
      {Kind::MatMul, DType::F32, {{LibraryField::N, 3072}}, Form::InPlace});
  table.rules.push_back({Kind::ConvForward, DType::F32, {}, Form::Default});
  EXPECT_EQ(table.formOf(product(788, 3072, 768)), Form::OpenBlas);
  EXPECT_EQ(table.formOf(product(787, 3072, 768)), Form::InPlace);
  EXPECT_EQ(table.formOf(product(787, 2048, 768)), Form::Packed);
  // As a product whose form the table's rules give.
  EXPECT_EQ(table.formOf(pointwise(Kind::ConvForward, 8, 8, 7)), Form::InPlace);
  EXPECT_EQ(table.formOf(pointwise(Kind::ConvForward, 8, 8, 1, 788)),
            Form::OpenBlas);
}

/// All forms compute the same, and each repeats its bits.
TEST(LibraryTable, FormsAgree) {
  for (Kind kind : {Kind::MatMul, Kind::ConvForward, Kind::ConvInputGrad,
                    Kind::ConvWeightGrad}) {
    PrimitiveDesc desc = kind == Kind::MatMul ? product(300, 1024, 70)
                                              : pointwise(kind, 40, 64, 9, 2);
    SCOPED_TRACE(describe(desc));
    PrimitiveDesc shape = kind == Kind::MatMul ? desc : productOf(desc);
    const MatMulDesc &m = shape.matmul;
    auto a = values<float>(m.m * m.k, 1), b = values<float>(m.k * m.n, 2);
    std::vector<LibraryForm> forms = formsOf(desc);
    ASSERT_EQ(forms.size(), kind == Kind::MatMul ? 3u : 4u);
    std::vector<double> first;
    for (LibraryForm form : forms) {
      SCOPED_TRACE(libraryFormName(form));
      desc.form = form;
      std::vector<float> got = runPrimitive<float>(desc, a, b, m.m * m.n);
      if (first.empty())
        first.assign(got.begin(), got.end());
      EXPECT_LT(worst(got, first), 2e-6);
      std::string error;
      auto primitive = Primitive::create(desc, 2, error);
      ASSERT_TRUE(primitive) << error;
      EXPECT_EQ(primitive->implementation() == "OpenBLAS gemm",
                form == Form::OpenBlas);
    }
  }
}

/// A descriptor that asks for a form that it cannot have is unsound.
TEST(LibraryTable, FormsThatDoNotFit) {
  PrimitiveDesc desc = product(4, 4, 4);
  desc.form = Form::Convolution;
  EXPECT_NE(check(desc), "");
  desc.form = Form::OpenBlas;
  EXPECT_EQ(check(desc), "");
  desc.dtype = DType::BF16;
  EXPECT_NE(check(desc), "");
  desc = pointwise(Kind::ConvForward, 8, 8, 7);
  desc.form = Form::Packed;
  EXPECT_EQ(check(desc), "");
  desc.conv.kernel[0] = 3;
  desc.conv.padsLo[0] = desc.conv.padsHi[0] = 1;
  EXPECT_NE(check(desc), "");
  desc.form = static_cast<Form>(kNumLibraryForms);
  EXPECT_NE(check(desc), "");
}
