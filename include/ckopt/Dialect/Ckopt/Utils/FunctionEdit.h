//===- FunctionEdit.h - names, arguments, results of functions --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_UTILS_FUNCTIONEDIT_H
#define CKOPT_DIALECT_CKOPT_UTILS_FUNCTIONEDIT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace ckopt {

/// Returns the function of that name, or null with an error that lists the
/// functions of the module.
mlir::func::FuncOp findFunction(mlir::ModuleOp module, llvm::StringRef name);
/// The argument's `ckopt.name`, or "arg<index>".
std::string argumentName(mlir::func::FuncOp function, unsigned index);
/// The result's `ckopt.name`, or "result<index>".
std::string resultName(mlir::func::FuncOp function, unsigned index);
/// The argument's `ckopt.role`, or "".
llvm::StringRef argumentRole(mlir::func::FuncOp function, unsigned index);
/// The source node that an op came from: the name of its location, or "".
llvm::StringRef nodeName(mlir::Location loc);
/// Index of the argument of this name.
std::optional<unsigned> findArgument(mlir::func::FuncOp function,
                                     llvm::StringRef name);
/// Index of the first argument with this role.
std::optional<unsigned> findRole(mlir::func::FuncOp function,
                                 llvm::StringRef role);

/// The function's results, to be changed as a list: value and attributes.
struct Result {
  mlir::Value value;
  llvm::SmallVector<mlir::NamedAttribute> attrs;

  void set(mlir::OpBuilder &builder, llvm::StringRef name,
           mlir::Attribute value);
  mlir::Attribute get(llvm::StringRef name) const;
};
llvm::SmallVector<Result> takeResults(mlir::func::FuncOp function);
/// Makes these the function's results; its type follows.
void setResults(mlir::func::FuncOp function, llvm::ArrayRef<Result> results);
/// Appends an argument with a name and a role. Names stay unique: one that is
/// taken (by a model's own input) gets a number.
mlir::BlockArgument addArgument(mlir::func::FuncOp function, mlir::Type type,
                                llvm::StringRef name, llvm::StringRef role);
/// Returns the argument of this role, an i64; adds it where there is none.
mlir::BlockArgument findOrAddNumber(mlir::func::FuncOp function,
                                    llvm::StringRef name, llvm::StringRef role);
/// Returns whether the argument is a frozen weight or a constant, which no step
/// changes.
bool isStoredForGood(mlir::BlockArgument argument);
/// Checks that the function has one block that ends in func.return.
llvm::LogicalResult checkStraightLine(mlir::func::FuncOp function);
/// Erases ops whose results nobody uses.
void eraseDeadOps(mlir::func::FuncOp function);

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_UTILS_FUNCTIONEDIT_H
