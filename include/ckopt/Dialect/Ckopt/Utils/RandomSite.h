//===- RandomSite.h - ops that draw random numbers --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers are functions of (seed, step, site, element). An op that draws
// them has an attribute `site`; in a kernel it is an index of the call's
// scalars, so that ops which differ only in their site share the kernel.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_UTILS_RANDOMSITE_H
#define CKOPT_DIALECT_CKOPT_UTILS_RANDOMSITE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace ckopt {

inline constexpr llvm::StringLiteral kSiteAttr = "site";

/// The op's site; nullopt: it draws no random numbers.
inline std::optional<int64_t> randomSite(mlir::Operation *op) {
  if (auto site = op->getAttrOfType<mlir::IntegerAttr>(kSiteAttr))
    return site.getInt();
  return std::nullopt;
}

inline void setRandomSite(mlir::Operation *op, int64_t site) {
  mlir::Type type = op->getAttrOfType<mlir::IntegerAttr>(kSiteAttr).getType();
  op->setAttr(kSiteAttr, mlir::IntegerAttr::get(type, site));
}

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_UTILS_RANDOMSITE_H
