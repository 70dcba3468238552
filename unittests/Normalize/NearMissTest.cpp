//===- NearMissTest.cpp - what nearly is a known formula ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each program is one that a rewrite recognizes. It must recognize this one,
// and of each program that differs in one or two places it must keep the
// numbers, whether it takes it for its own or not. The reference interpreter
// computes both forms in f64.
//
//===----------------------------------------------------------------------===//
#include "../LongTests.h"
#include "GraphImporter.h"
#include "Mutations.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Normalize/Passes.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSwitch.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {
struct Form {
  const char *name;
  const char *becomes; ///< an op that the rewrite makes of it; null: none
  const char *arguments, *body;
  LogicalResult (*rewrite)(func::FuncOp);
  bool definesNaN = false; ///< a NaN may become a number
};

void PrintTo(const Form &form, std::ostream *os) { *os << form.name; }

using Tensors = SmallVector<reference::Tensor>;
} // namespace

//===----------------------------------------------------------------------===//
// Rewrites
//===----------------------------------------------------------------------===//

static LogicalResult gelu(func::FuncOp function) {
  onnx_frontend::fuseGelu(function);
  return success();
}

static LogicalResult rowNorm(func::FuncOp function) {
  onnx_frontend::fuseRowNorms(function);
  return success();
}

template <std::unique_ptr<Pass> (*create)()>
static LogicalResult pass(func::FuncOp function) {
  PassManager passes(function.getContext());
  passes.addNestedPass<func::FuncOp>(create());
  return passes.run(function->getParentOfType<ModuleOp>());
}

static LogicalResult chunks(func::FuncOp function) {
  return chunkVocabulary(function, "2", ChunkRule{1, 1, 1});
}

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

static const Form forms[] = {
#include "Forms.inc"
};

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// Writes out the types: @2x3 is of the floats `element`, #2x3 of booleans; and
/// $, which is -inf.
static std::string inFull(StringRef text, StringRef element) {
  StringRef low = llvm::StringSwitch<StringRef>(element)
                      .Case("f64", "0xFFF0000000000000")
                      .Case("f32", "0xFF800000")
                      .Case("f16", "0xFC00")
                      .Default("0xFF80");
  std::string full;
  while (!text.empty()) {
    size_t at = text.find_first_of("@#$");
    full += text.take_front(at);
    if (at == StringRef::npos)
      break;
    char sign = text[at];
    text = text.drop_front(at + 1);
    if (sign == '$') {
      full += low;
      continue;
    }
    StringRef type = sign == '@' ? element : "i1";
    StringRef dims =
        text.take_while([](char c) { return isdigit(c) || c == 'x'; });
    text = text.drop_front(dims.size());
    full += ("tensor<" + dims + (dims.empty() ? "" : "x") + type + ">").str();
  }
  return full;
}

namespace {
class NearMiss : public testing::TestWithParam<Form> {
protected:
  NearMiss() {
    DialectRegistry registry;
    registry.insert<CkoptDialect, func::FuncDialect>();
    reference::registerReferenceModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  OwningOpRef<ModuleOp> parse(StringRef element = "f64") {
    StringRef body = GetParam().body, results = body.rsplit(" : ").second;
    std::string text = "func.func @forward(" +
                       inFull(GetParam().arguments, element) + ") -> (" +
                       inFull(results, element) + ") {" +
                       inFull(body, element) + "\n}";
    return parseSourceString<ModuleOp>(text, &context);
  }

  bool valid(ModuleOp module) { return succeeded(verify(module)); }

  /// Results for the same random arguments in both; none if an op has no
  /// meaning.
  static Tensors evaluate(ModuleOp module) {
    Tensors arguments, results;
    auto function = module.lookupSymbol<func::FuncOp>("forward");
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
      arguments.push_back(reference::Tensor::random(
          cast<RankedTensorType>(type), i + 1,
          isa<FloatType>(getElementTypeOrSelf(type)) ? -2 : 0, 2));
    reference::Options options;
    options.roundToType = false;
    if (failed(reference::evaluate(function, arguments, results, options)))
      return {};
    return results;
  }

  /// Rewrites the program and compares; returns whether it was a valid one.
  bool keepsNumbers(ModuleOp module, StringRef change);

  MLIRContext context{MLIRContext::Threading::DISABLED};
};
} // namespace

bool NearMiss::keepsNumbers(ModuleOp module, StringRef change) {
  Tensors before;
  {
    ScopedDiagnosticHandler silent(&context, [](Diagnostic &) {});
    if (!valid(module))
      return false;
    before = evaluate(module);
    if (before.empty())
      return false;
  }
  OwningOpRef<ModuleOp> rewritten = module.clone();
  std::string text;
  ScopedDiagnosticHandler kept(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      text += diagnostic.str();
  });
  auto function = rewritten->lookupSymbol<func::FuncOp>("forward");
  bool done = succeeded(GetParam().rewrite(function)) && valid(*rewritten);
  Tensors after = done ? evaluate(*rewritten) : Tensors();
  bool same = before.size() == after.size();
  for (size_t i = 0; same && i < after.size() && GetParam().definesNaN; ++i)
    for (int64_t j = 0; j < after[i].size(); ++j)
      if (before[i].isFloat() && std::isnan(before[i].real(j)))
        before[i].real(j) = after[i].real(j);
  for (size_t i = 0; same && i < after.size(); ++i)
    same = before[i].getShape() == after[i].getShape() &&
           reference::allClose(before[i], after[i], 1e-7, 1e-7);
  if (same)
    return true;
  llvm::raw_string_ostream os(text);
  os << "\n" << module << "became\n" << *rewritten;
  for (size_t i = 0; i < after.size(); ++i)
    os << before[i].str() << "\n" << after[i].str() << "\n";
  ADD_FAILURE() << change.str() << "\n" << text;
  return true;
}

TEST_P(NearMiss, TheFormItself) {
  for (const char *element : {"f64", "f32"}) {
    auto module = parse(element);
    ASSERT_TRUE(module);
    EXPECT_TRUE(keepsNumbers(*module, element));
    if (!GetParam().becomes)
      continue;
    auto function = module->lookupSymbol<func::FuncOp>("forward");
    ASSERT_TRUE(succeeded(GetParam().rewrite(function)));
    bool found = false;
    function.walk([&](Operation *op) {
      found |= op->getName().getStringRef() == GetParam().becomes;
    });
    EXPECT_TRUE(found) << GetParam().becomes;
  }
}

TEST_P(NearMiss, OneChange) {
  auto module = parse();
  ASSERT_TRUE(module);
  int64_t compared = 0;
  for (int64_t which = 0; !HasFailure(); ++which) {
    OwningOpRef<ModuleOp> changed = module->clone();
    std::string change =
        mutate(changed->lookupSymbol<func::FuncOp>("forward"), which);
    if (change.empty())
      break;
    compared += keepsNumbers(*changed, change);
  }
  EXPECT_GT(compared, 20);
}

// Halves have constants that are rounded.
TEST_P(NearMiss, Halves) {
  for (const char *element : {"f16", "bf16"}) {
    OwningOpRef<ModuleOp> module;
    {
      ScopedDiagnosticHandler silent(&context, [](Diagnostic &) {});
      module = parse(element); // attention has lse in f32, then
    }
    if (module)
      EXPECT_TRUE(keepsNumbers(*module, element));
  }
}

TEST_P(NearMiss, TwoChanges) {
  auto module = parse();
  ASSERT_TRUE(module);
  std::mt19937 random(1);
  int64_t count = 0;
  for (bool more = true; more; count += more) {
    OwningOpRef<ModuleOp> changed = module->clone();
    more =
        !mutate(changed->lookupSymbol<func::FuncOp>("forward"), count).empty();
  }
  int64_t pairs = runsLongTests() ? 5000 : 200;
  for (int64_t i = 0; i < pairs && !HasFailure(); ++i) {
    OwningOpRef<ModuleOp> changed = module->clone();
    auto function = changed->lookupSymbol<func::FuncOp>("forward");
    std::string change = mutate(function, int64_t(random()) % count);
    {
      ScopedDiagnosticHandler silent(&context, [](Diagnostic &) {});
      if (!valid(*changed))
        continue;
    }
    change += "; " + mutate(function, int64_t(random()) % count);
    keepsNumbers(*changed, change);
  }
}

INSTANTIATE_TEST_SUITE_P(Normalize, NearMiss, testing::ValuesIn(forms),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
