// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A compiler with a dialect of its own plans a function of its own kind:
//
// - my.gemm gets PlanningOpInterface by an external model: seconds, workspace;
// - my.draw has unknown effects, but may run again, as an external model
//   states;
// - my.act is cheap, which a callback states;
// - `!my.blob` has 4 KiB, which another callback states;
// - my.func is a function like any other.
//
// It prints the results, first of the pass, then of the library.
#include "ckopt/Remat/Passes.h"
#include "ckopt/Remat/Remat.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace my {

struct BlobType : Type::TypeBase<BlobType, Type, TypeStorage> {
  using Base::Base;
  static constexpr StringLiteral name = "my.blob";
};

/// A pure op with any operands and one result.
template <typename Self>
struct PureOp
    : Op<Self, OpTrait::ZeroRegions, OpTrait::OneResult,
         OpTrait::VariadicOperands, ConditionallySpeculatable::Trait,
         OpTrait::AlwaysSpeculatableImplTrait, MemoryEffectOpInterface::Trait> {
  using Op<Self, OpTrait::ZeroRegions, OpTrait::OneResult,
           OpTrait::VariadicOperands, ConditionallySpeculatable::Trait,
           OpTrait::AlwaysSpeculatableImplTrait,
           MemoryEffectOpInterface::Trait>::Op;
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
  void getEffects(
      SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &) {}
};
struct GemmOp : PureOp<GemmOp> {
  using PureOp::PureOp;
  static StringRef getOperationName() { return "my.gemm"; }
};
struct ActOp : PureOp<ActOp> {
  using PureOp::PureOp;
  static StringRef getOperationName() { return "my.act"; }
};
/// MLIR knows nothing about its effects.
struct DrawOp : Op<DrawOp, OpTrait::ZeroRegions, OpTrait::OneResult,
                   OpTrait::VariadicOperands> {
  using Op::Op;
  static StringRef getOperationName() { return "my.draw"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
};
struct ReturnOp : Op<ReturnOp, OpTrait::ZeroRegions, OpTrait::ZeroResults,
                     OpTrait::VariadicOperands, OpTrait::IsTerminator,
                     MemoryEffectOpInterface::Trait> {
  using Op::Op;
  static StringRef getOperationName() { return "my.return"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
  void getEffects(
      SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &) {}
};

/// A function with one block, like func.func.
struct FuncOp : Op<FuncOp, OpTrait::OneRegion, OpTrait::ZeroResults,
                   OpTrait::ZeroSuccessors, OpTrait::ZeroOperands,
                   OpTrait::IsIsolatedFromAbove, SymbolOpInterface::Trait,
                   ArgAndResultAttrsOpInterface::Trait,
                   CallableOpInterface::Trait, FunctionOpInterface::Trait> {
  using Op::Op;
  static StringRef getOperationName() { return "my.func"; }
  static ArrayRef<StringRef> getAttributeNames() {
    static StringRef names[] = {"sym_name", "function_type", "arg_attrs",
                                "res_attrs"};
    return names;
  }
  FunctionType getFunctionType() {
    return cast<FunctionType>(
        (*this)->getAttrOfType<TypeAttr>("function_type").getValue());
  }
  void setFunctionTypeAttr(TypeAttr type) {
    (*this)->setAttr("function_type", type);
  }
  Type cloneTypeWith(TypeRange inputs, TypeRange results) {
    return FunctionType::get(getContext(), inputs, results);
  }
  ArrayAttr getArgAttrsAttr() {
    return (*this)->getAttrOfType<ArrayAttr>("arg_attrs");
  }
  ArrayAttr getResAttrsAttr() {
    return (*this)->getAttrOfType<ArrayAttr>("res_attrs");
  }
  void setArgAttrsAttr(ArrayAttr attr) { (*this)->setAttr("arg_attrs", attr); }
  void setResAttrsAttr(ArrayAttr attr) { (*this)->setAttr("res_attrs", attr); }
  Attribute removeArgAttrsAttr() { return (*this)->removeAttr("arg_attrs"); }
  Attribute removeResAttrsAttr() { return (*this)->removeAttr("res_attrs"); }
  ArrayRef<Type> getArgumentTypes() { return getFunctionType().getInputs(); }
  ArrayRef<Type> getResultTypes() { return getFunctionType().getResults(); }
  Region *getCallableRegion() { return &getOperation()->getRegion(0); }
  static ParseResult parse(OpAsmParser &parser, OperationState &result) {
    return function_interface_impl::parseFunctionOp(
        parser, result, /*allowVariadic=*/false,
        StringAttr::get(result.getContext(), "function_type"),
        [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results,
           function_interface_impl::VariadicFlag,
           std::string &) { return builder.getFunctionType(inputs, results); },
        StringAttr::get(result.getContext(), "arg_attrs"),
        StringAttr::get(result.getContext(), "res_attrs"));
  }
};

struct MyDialect : Dialect {
  static StringRef getDialectNamespace() { return "my"; }
  explicit MyDialect(MLIRContext *context)
      : Dialect("my", context, TypeID::get<MyDialect>()) {
    addOperations<GemmOp, ActOp, DrawOp, ReturnOp, FuncOp>();
    addTypes<BlobType>();
  }
  Type parseType(DialectAsmParser &parser) const override {
    return succeeded(parser.parseKeyword("blob")) ? BlobType::get(getContext())
                                                  : Type();
  }
  void printType(Type, DialectAsmPrinter &printer) const override {
    printer << "blob";
  }
};

struct GemmPlanning
    : ckopt::PlanningOpInterface::ExternalModel<GemmPlanning, GemmOp> {
  std::optional<double> getPlanningSeconds(Operation *) const { return 1e-2; }
  std::optional<int64_t> getPlanningWorkspace(Operation *) const {
    return 8192;
  }
};
struct DrawPlanning
    : ckopt::PlanningOpInterface::ExternalModel<DrawPlanning, DrawOp> {
  std::optional<bool> isRematerializable(Operation *) const { return true; }
  std::optional<int64_t> getPlanningWorkspace(Operation *) const { return 0; }
};

} // namespace my

static const char *ir = R"(
my.func @f(%x: !my.blob) -> !my.blob {
  %0 = "my.draw"(%x) : (!my.blob) -> !my.blob
  %1 = "my.gemm"(%0, %x) : (!my.blob, !my.blob) -> !my.blob
  %2 = "my.act"(%1) : (!my.blob) -> !my.blob
  %3 = "my.gemm"(%2, %x) : (!my.blob, !my.blob) -> !my.blob
  %4 = "my.act"(%3) : (!my.blob) -> !my.blob
  %5 = "my.gemm"(%4, %2) : (!my.blob, !my.blob) -> !my.blob
  %6 = "my.gemm"(%5, %0) : (!my.blob, !my.blob) -> !my.blob
  "my.return"(%6) : (!my.blob) -> ()
})";

static int64_t count(Operation *module, StringRef name) {
  int64_t number = 0;
  module->walk(
      [&](Operation *op) { number += op->getName().getStringRef() == name; });
  return number;
}

int main() {
  DialectRegistry registry;
  registry.insert<my::MyDialect>();
  registry.addExtension(+[](MLIRContext *context, my::MyDialect *) {
    my::GemmOp::attachInterface<my::GemmPlanning>(*context);
    my::DrawOp::attachInterface<my::DrawPlanning>(*context);
  });
  MLIRContext context(registry);

  ckopt::PlanningHooks hooks;
  hooks.typeBytes = [](Type type) {
    return isa<my::BlobType>(type) ? std::optional<int64_t>(4096)
                                   : std::nullopt;
  };
  hooks.seconds = [](Operation *op) {
    return isa<my::ActOp>(op) ? std::optional(1e-5) : std::nullopt;
  };

  // The pass, in this program's own pass manager.
  ckopt::RematOptions options;
  options.budget.kind = ckopt::MemoryBudget::Kind::Minimum;
  options.remarks = true;
  options.hooks = hooks;
  auto module = parseSourceString<ModuleOp>(ir, &context);
  if (!module)
    return 1;
  PassManager passes(&context);
  passes.addPass(ckopt::createRematPass(options));
  if (failed(passes.run(*module)))
    return 1;
  llvm::outs() << "draws " << count(*module, "my.draw") << ", products "
               << count(*module, "my.gemm") << "\n";
  auto first = *module->getOps<my::FuncOp>().begin();
  llvm::outs() << "pass: " << first->getAttr("ckopt.plan") << "\n";

  // The library: the same options as the pass, without rewriting anything.
  auto again = parseSourceString<ModuleOp>(ir, &context);
  ckopt::CostModel costs;
  my::FuncOp function = *again->getOps<my::FuncOp>().begin();
  auto plan = ckopt::planRemat(function, options, costs);
  if (failed(plan) || !plan->result.hasPlan())
    return 1;
  llvm::outs() << "library: " << plan->arena << " bytes instead of "
               << plan->fullArena << ", " << plan->recomputedSteps()
               << " ops computed again, costs "
               << plan->problem.costs.describe() << "\n";
  return 0;
}
