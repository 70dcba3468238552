//===- Flags.h - the flags of the ckopt tool --------------------*- C++ -*-===//
#ifndef CKOPT_LIB_DRIVER_FLAGS_H
#define CKOPT_LIB_DRIVER_FLAGS_H

#include "CommandLine.h"

#include "ckopt/Support/FlagTable.h"

#include <set>
#include <string>

namespace ckopt {

/// Fills a table with all flags of all subcommands, which store into `options`.
class DriverFlags {
public:
  explicit DriverFlags(DriverOptions &options);
  DriverFlags(const DriverFlags &) = delete;

  FlagTable table;
  /// The names of those that the command line had.
  std::set<std::string> given;

private:
  void add(llvm::StringRef name, llvm::StringRef value, unsigned commands,
           llvm::StringRef help, Flag::Store store) {
    auto noted = [this, name = name.str(),
                  store = std::move(store)](llvm::StringRef text) {
      given.insert(name);
      return store(text);
    };
    table.add(name, value, commands, help, std::move(noted));
  }
  void addModelFlags();
  void addLossFlags();
  void addArithmeticFlags();
  void addBudgetFlags();
  void addPlanFlags();
  void addPolicyFlags();
  void addDataFlags();
  void addCompilerFlags();
  void addDeviceFlags();
  void addToolFlags();

  /// Takes a budget from one flag; a second kind beside it is an error.
  llvm::Error setBudget(llvm::StringRef flag, const MemoryBudget &budget);

  DriverOptions &o;
  std::string budgetFlag;
};

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_FLAGS_H
