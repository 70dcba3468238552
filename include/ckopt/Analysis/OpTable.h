//===- OpTable.h - descriptions of ops by data ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table says of the ops and types of a dialect what plans need, in a file or
// in the attribute `ckopt.ops` of a module:
//
//   { "format": "ckopt-ops/1",
//     "types": [ { "type": "!torch.vtensor<[$dims],$element>" },
//                { "type": "!torch.int", "bytes": 0 } ],
//     "ops": [ { "op": ["stablehlo.add", "stablehlo.multiply"], "pure": true,
//                "reuse": "elementwise" },
//              { "op": "stablehlo.reshape", "pure": true, "view": 0 },
//              { "op": "stablehlo.dot_general", "pure": true,
//                "work": { "matmul": "2 * elements(results[0])" } },
//              { "op": "stablehlo.custom_call", "pure": true,
//                "where": { "call_target_name": "my_kernel" },
//                "workspace": "bytes(operands[0])" } ] }
//
// `op` is a name, a pattern in which `*` stands for any text, or a list of
// both. Of the entries that agree with an op the first counts whose name is no
// pattern, else the first. `where` asks for attributes of the op with these
// texts. The other members give the op the attributes of OpFacts.h where it has
// none, numbers by formulas (OpFormula.h). An op that an entry describes is
// taken to need no workspace but what its regions do. `view` and `reuse` may be
// "each": result N is, or may take over, the bytes of operand N; `reuse` may be
// "elementwise": those of any operand of the result's type.
//
// In a type, `$dims` stands for sizes between `,` or `x`, `$element` for a type
// that MLIR knows.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_OPTABLE_H
#define CKOPT_ANALYSIS_OPTABLE_H

#include "ckopt/Analysis/OpFormula.h"
#include "ckopt/Analysis/PlanningHooks.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ckopt {

class OpTable {
public:
  /// Parses a table; errors name the source, the entry and the column.
  static llvm::Expected<OpTable> parse(llvm::StringRef text,
                                       std::string source);
  static llvm::Expected<OpTable> read(const std::string &path);
  /// Reads the attribute `ckopt.ops`: a list of entries.
  static llvm::Expected<OpTable> fromAttribute(mlir::Attribute attr);

  struct Entry {
    std::string label; ///< for messages: "FILE: ops[3] (stablehlo.add)"
    std::map<std::string, std::string> where;
    std::optional<bool> pure, constant;
    std::optional<int64_t> view; ///< kEach: as described above
    std::string regions, reuse;
    std::vector<int64_t> pairs;
    std::optional<OpFormula> workspace;
    std::map<std::string, OpFormula> work;
  };
  static constexpr int64_t kEach = -1;

  /// Returns the entry that describes the op, or null.
  const Entry *find(mlir::Operation *op) const;
  /// Returns the shape or the bytes of a type that the table describes.
  std::optional<llvm::SmallVector<int64_t>> shape(mlir::Type type) const;
  std::optional<int64_t> bytes(mlir::Type type) const;
  /// Returns where the table came from.
  llvm::StringRef source() const { return from; }

private:
  struct TypeEntry {
    std::string pattern;
    std::optional<int64_t> bytes;
  };
  struct Sized {
    llvm::SmallVector<int64_t> shape;
    std::optional<int64_t> bytes;
  };
  static llvm::Expected<OpTable> fromJson(const llvm::json::Object &root,
                                          std::string source);
  llvm::Error addOp(const llvm::json::Object &object, size_t index);
  llvm::Error addType(const llvm::json::Object &object, size_t index);
  std::optional<Sized> sized(mlir::Type type) const;

  std::string from;
  std::vector<Entry> entries;
  std::vector<TypeEntry> types;
  /// Entries by the names and patterns that they have.
  llvm::StringMap<std::vector<size_t>> named;
  std::vector<std::pair<std::string, size_t>> patterns;
};

/// Tables, the first of which counts that describes an op or a type.
using OpTables = std::vector<std::shared_ptr<const OpTable>>;

/// The attribute of a module.
inline constexpr llvm::StringLiteral kOpsAttr = "ckopt.ops";

/// Gives the ops inside of `root` the attributes that tables say; emits errors
/// for formulas that do not fit an op.
mlir::LogicalResult describeOps(mlir::Operation *root, const OpTables &tables);
/// Removes what describeOps() gave.
void undescribeOps(mlir::Operation *root);
/// Lets tables size the types that the client's callback does not.
void sizeTypes(PlanningHooks &hooks, const OpTables &tables);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_OPTABLE_H
