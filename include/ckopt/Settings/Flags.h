//===- Flags.h - the flags of the ckopt tool --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SETTINGS_FLAGS_H
#define CKOPT_SETTINGS_FLAGS_H

#include "ckopt/Compiler/Together.h"
#include "ckopt/Settings/CommandLine.h"

#include "ckopt/Support/FlagTable.h"

#include <memory>
#include <set>
#include <string>

namespace ckopt {

/// The subcommands as bits, and sets of them.
namespace takers {
enum : unsigned {
  Import = 1u << unsigned(Command::Import),
  Plan = 1u << unsigned(Command::Plan),
  Compile = 1u << unsigned(Command::Compile),
  Train = 1u << unsigned(Command::Train),
  Run = 1u << unsigned(Command::Run),
  Grad = 1u << unsigned(Command::Grad),
  Bench = 1u << unsigned(Command::Bench),
  Inspect = 1u << unsigned(Command::Inspect),
  Compare = 1u << unsigned(Command::Compare),
  Check = 1u << unsigned(Command::Check),
  Merge = 1u << unsigned(Command::Merge),
  Quantize = 1u << unsigned(Command::Quantize),
  Program = Quantize << 1, ///< no command: the settings of a program's step
  Stepping = Plan | Compile | Train | Bench | Inspect | Compare | Program,
  Models = Import | Stepping | Run | Grad | Check,
};
} // namespace takers

/// Parses "dp:N", "fsdp:N" or "dp:M,fsdp:N".
llvm::Error parseParallel(llvm::StringRef text, StepOptions &options);

/// Fills a table with all flags of all subcommands, which store into `options`.
class DriverFlags {
public:
  explicit DriverFlags(DriverOptions &options);
  DriverFlags(const DriverFlags &) = delete;

  FlagTable table;
  /// The names of the flags on the command line.
  std::set<std::string> given;

  /// Completes options that depend on several flags: target, loss, optimizer,
  /// groups, schedule. Flags that do not apply to these are usage errors. Call
  /// it after parsing.
  llvm::Error settle();

private:
  llvm::Error settleOptimizer();
  void add(llvm::StringRef name, llvm::StringRef value, unsigned commands,
           const MessageText &help, Flag::Store store) {
    // For a flag that names a file or device: its value may differ between
    // machines.
    bool elsewhere = value == "FILE" || value == "FOLDER" || value == "DIR" ||
                     value == "cuda:N";
    Flag::Store named = store; // reports the file that the flag names
    named.keep = [this, name = name.str(), phase = phase,
                  value = elsewhere ? value.str() : "",
                  store = std::move(store.keep)](llvm::StringRef text) {
      given.insert(name);
      Setting flag = Setting::ofFlag(name), compared = flag;
      if (!text.empty()) {
        flag.value = text.str();
        compared.value = value.empty() ? comparableText(text) : value;
      }
      o.compile.flags[name] += " " + compared;
      if (!phase.empty())
        o.compile.phases.flags[phase] += (" " + flag).inShell();
      return store(text);
    };
    table.add(name, value, commands, help, std::move(named));
  }
  /// Flags that are added next are read only by this phase; empty: by later
  /// ones, too.
  void readBy(llvm::StringRef reader) { phase = reader.str(); }
  void addModelFlags();
  llvm::Expected<int64_t> readSize(llvm::StringRef flag, llvm::StringRef name,
                                   llvm::StringRef text);
  void addAdapterFlags();
  void addLossFlags();
  void addOptimizerFlags();
  void addScheduleFlags();
  void addBudgetFlags();
  void addPolicyFlags();
  void addDataFlags();
  void addRunFlags();
  void addTimeFlags();
  void addCompilerFlags();
  void addLossScaleFlags();
  void addDeviceFlags();
  void addToolFlags();

  /// Sets the budget from a flag; a second budget of another kind is an error.
  llvm::Error setBudget(const MessageText &flag, const MemoryBudget &budget);

  /// Refuses flags that would not be read because of others.
  llvm::Error checkRead() const;
  llvm::Error settleParallel();
  llvm::Error settleGroups();
  llvm::Error settleSchedule();

  /// Finds the target, which completes the options and refuses some.
  llvm::Error settleTarget();

  /// The options and the flags of each target.
  struct OwnSettings {
    const TargetInfo *target = nullptr;
    std::shared_ptr<const TargetOptions> options;
    std::vector<std::string> flags;
  };

  DriverOptions &o;
  std::vector<OwnSettings> ownSettings;
  std::string phase; ///< readBy()
  MessageText budgetFlag;
  bool budgetOfDevice = false;     ///< its free bytes are the budget
  std::vector<std::string> groups; ///< --group, as given
  std::string rateFile;            ///< of --lr-schedule=file:PATH
};

} // namespace ckopt

#endif // CKOPT_SETTINGS_FLAGS_H
