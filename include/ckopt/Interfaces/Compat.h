//===- Compat.h - what differs among releases of MLIR -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass is built with MLIR 22 and MLIR 19. What it asks of them in two ways
// is here, in terms of 22, and nowhere else. What 19 has not at all: the remark
// engine (nobody collects optimization remarks there), metadata of diagnostics
// (Dialect/Ckopt/Utils/DiagnosticMetadata.h), and the pass
// optimize-allocation-liveness, which is ours there
// (lib/Transforms/Remat/OlderMlir.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_INTERFACES_COMPAT_H
#define CKOPT_INTERFACES_COMPAT_H

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Config/llvm-config.h"

#if LLVM_VERSION_MAJOR >= 22
#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "mlir/IR/Remarks.h"
#else
#include "mlir/Dialect/Quant/QuantTypes.h"
#endif

namespace ckopt::compat {

/// What a function-like hook of BufferModel gets a tensor's buffer by.
using GetBuffer = llvm::function_ref<mlir::FailureOr<mlir::Value>(mlir::Value)>;

#if LLVM_VERSION_MAJOR >= 22

template <typename Op, typename... Args>
Op create(mlir::OpBuilder &builder, Args &&...args) {
  return Op::create(builder, std::forward<Args>(args)...);
}

inline bool hasUnknownEffects(mlir::Operation *op) {
  return mlir::hasUnknownEffects(op);
}

template <typename Call>
mlir::Operation *resolveCallable(Call call,
                                 mlir::SymbolTableCollection &symbols) {
  return call.resolveCallableInTable(&symbols);
}

inline std::optional<llvm::APInt>
staticTripCount(mlir::LoopLikeOpInterface loop) {
  return loop.getStaticTripCount();
}

inline mlir::LogicalResult
getStridesAndOffset(mlir::MemRefType type,
                    llvm::SmallVectorImpl<int64_t> &strides, int64_t &offset) {
  return type.getStridesAndOffset(strides, offset);
}

/// Adds to a list among the options of a pass.
inline void addTo(llvm::SmallVectorImpl<std::string> &list,
                  llvm::ArrayRef<std::string> added) {
  list.append(added.begin(), added.end());
}

/// An external model of a bufferizable op, whose
/// `toBuffers(op, rewriter, getBuffer)` takes the place of `bufferize`.
template <typename Model, typename Op>
struct BufferModel
    : mlir::bufferization::BufferizableOpInterface::ExternalModel<Model, Op> {
  mlir::LogicalResult
  bufferize(mlir::Operation *op, mlir::RewriterBase &rewriter,
            const mlir::bufferization::BufferizationOptions &options,
            mlir::bufferization::BufferizationState &state) const {
    return static_cast<const Model *>(this)->toBuffers(
        op, rewriter, [&](mlir::Value value) {
          return getBuffer(rewriter, value, options, state);
        });
  }
};

inline void addOneShotBufferize(mlir::OpPassManager &passes) {
  mlir::bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.allowReturnAllocsFromLoops = true;
  options.functionBoundaryTypeConversion =
      mlir::bufferization::LayoutMapOption::IdentityLayoutMap;
  passes.addPass(mlir::bufferization::createOneShotBufferizePass(options));
}

inline std::unique_ptr<mlir::Pass> createAllocationLivenessPass() {
  return mlir::bufferization::createOptimizeAllocationLivenessPass();
}
inline void registerAllocationLivenessPass() {} // MLIR does

inline bool collectsRemarks(mlir::MLIRContext *context) {
  return context->getRemarkEngine() != nullptr;
}

/// An optimization remark of category `remat`; dropped where nobody collects
/// them.
class Remark {
public:
  Remark(mlir::Location where, llvm::StringRef name, llvm::StringRef function,
         bool passed)
      : out(begin(
            where,
            mlir::remark::RemarkOpts::name(name).category("remat").function(
                function),
            passed)) {}
  template <typename T> Remark &metric(llvm::StringRef key, T &&value) {
    if (out)
      out << mlir::remark::metric(key, std::forward<T>(value));
    return *this;
  }
  void reason(llvm::StringRef text) {
    if (out)
      out << mlir::remark::reason("{0}", text);
  }

private:
  static mlir::remark::detail::InFlightRemark
  begin(mlir::Location where, mlir::remark::RemarkOpts options, bool passed) {
    return passed ? mlir::remark::passed(where, options)
                  : mlir::remark::analysis(where, options);
  }
  mlir::remark::detail::InFlightRemark out;
};

#else // MLIR 19

template <typename Op, typename... Args>
Op create(mlir::OpBuilder &builder, Args &&...args) {
  return builder.create<Op>(std::forward<Args>(args)...);
}

inline bool hasUnknownEffects(mlir::Operation *op) {
  return !mlir::isa<mlir::MemoryEffectOpInterface>(op) &&
         !op->hasTrait<mlir::OpTrait::HasRecursiveMemoryEffects>();
}

template <typename Call>
mlir::Operation *resolveCallable(Call call,
                                 mlir::SymbolTableCollection &symbols) {
  return mlir::CallOpInterface(call).resolveCallable(&symbols);
}

inline std::optional<llvm::APInt> staticTripCount(mlir::LoopLikeOpInterface) {
  return std::nullopt;
}

using mlir::getStridesAndOffset;

/// Such a list is a view in the options of a pass: what it views lives on.
void addTo(llvm::ArrayRef<std::string> &list,
           llvm::ArrayRef<std::string> added);

template <typename Model, typename Op>
struct BufferModel
    : mlir::bufferization::BufferizableOpInterface::ExternalModel<Model, Op> {
  mlir::LogicalResult
  bufferize(mlir::Operation *op, mlir::RewriterBase &rewriter,
            const mlir::bufferization::BufferizationOptions &options) const {
    return static_cast<const Model *>(this)->toBuffers(
        op, rewriter,
        [&](mlir::Value value) { return getBuffer(rewriter, value, options); });
  }
};

inline void addOneShotBufferize(mlir::OpPassManager &passes) {
  mlir::bufferization::OneShotBufferizationOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.allowReturnAllocsFromLoops = true;
  options.setFunctionBoundaryTypeConversion(
      mlir::bufferization::LayoutMapOption::IdentityLayoutMap);
  passes.addPass(mlir::bufferization::createOneShotBufferizePass(options));
}

std::unique_ptr<mlir::Pass> createAllocationLivenessPass();
void registerAllocationLivenessPass();

inline bool collectsRemarks(mlir::MLIRContext *) { return false; }

class Remark {
public:
  Remark(mlir::Location, llvm::StringRef, llvm::StringRef, bool) {}
  template <typename T> Remark &metric(llvm::StringRef, T &&) { return *this; }
  void reason(llvm::StringRef) {}
};

#endif

} // namespace ckopt::compat

#endif // CKOPT_INTERFACES_COMPAT_H
