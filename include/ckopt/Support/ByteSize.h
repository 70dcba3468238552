//===- ByteSize.h - byte budgets as people write them -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All tools parse budgets and print byte sizes with these functions. Arithmetic
// is exact; a fraction of a byte is dropped, since a budget is an upper limit.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_BYTESIZE_H
#define CKOPT_SUPPORT_BYTESIZE_H

#include "ckopt/Base/MessageText.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace ckopt {

/// A limit on the size of the arena.
struct MemoryBudget {
  enum class Kind {
    Unlimited,
    Bytes,           ///< `bytes`
    Ratio,           ///< `ratio` times the arena without recomputation
    ActivationRatio, ///< `ratio` times its reducible part, plus the rest
    Minimum,         ///< the smallest that can be found
  };
  Kind kind = Kind::Unlimited;
  int64_t bytes = 0;
  double ratio = 1;

  /// Returns the bytes of the budget, given the arena without recomputation and
  /// the part of it that recomputation cannot reduce (parameters, gradients,
  /// optimizer state, data); INT64_MAX when unlimited. Must not be
  /// called for Minimum.
  int64_t resolve(int64_t fullArena, int64_t fixedPart) const;
  /// "3 MiB (3,145,728 B)", "0.6 of the unconstrained arena", "the minimum".
  std::string describe() const;
};

/// Parses "4096", "512MiB", "2GB" (decimal), "1.5GiB"; units are B, KB, MB, GB,
/// TB, KiB, MiB, GiB, TiB in any case.
llvm::Expected<int64_t> parseByteSize(llvm::StringRef text);

/// Parses the value of --memory-budget: a byte size, a ratio "0.6x", or "min";
/// `flag` is named in errors.
llvm::Expected<MemoryBudget>
parseMemoryBudget(llvm::StringRef text,
                  const MessageText &flag = Setting("memory-budget"));

/// Parses the value of --budget-ratio or --activation-ratio (`kind`): a number
/// above 0 up to 1, or "min"; `flag` is named in errors.
llvm::Expected<MemoryBudget> parseBudgetRatio(llvm::StringRef text,
                                              MemoryBudget::Kind kind,
                                              const MessageText &flag);

/// Formats a number with separators: "3,083,264".
std::string groupDigits(int64_t value);
/// Formats bytes as "2.94 MiB": three significant digits, binary units; "512 B"
/// below 1 KiB.
std::string formatBytes(int64_t bytes);
/// Formats bytes both ways: "2.94 MiB (3,083,264 B)".
std::string formatBytesExact(int64_t bytes);

} // namespace ckopt

#endif // CKOPT_SUPPORT_BYTESIZE_H
