//===- Assemble.cpp - figures of ptxas for PTX ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs ptxas for tests and reports; in production, the driver assembles by
// itself at load time. ptxas reads a temporary file and writes nothing but its
// messages.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Cuda/BlockToPTX/BlockToPTX.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;
using llvm::SmallString;
using llvm::StringRef;

std::optional<std::string> ckopt::findPtxas() {
  if (auto path = llvm::sys::findProgramByName("ptxas"))
    return *path;
  SmallString<128> home("/usr/local/cuda");
  if (auto given = llvm::sys::Process::GetEnv("CUDA_HOME"))
    home = *given;
  llvm::sys::path::append(home, "bin");
  if (auto path = llvm::sys::findProgramByName("ptxas", {home.str()}))
    return *path;
  return std::nullopt;
}

/// Returns the number before `unit` in a list like "0 bytes stack frame, 8
/// bytes smem".
static int64_t numberBefore(StringRef line, StringRef unit) {
  size_t at = line.find(unit);
  if (at == StringRef::npos)
    return 0;
  StringRef before = line.take_front(at).rtrim();
  size_t start = before.find_last_not_of("0123456789");
  int64_t number = 0;
  (void)before.substr(start == StringRef::npos ? 0 : start + 1)
      .getAsInteger(10, number);
  return number;
}

/// Parses the messages of `ptxas -v`.
static std::vector<AssembledKernel> readMessages(StringRef text) {
  std::vector<AssembledKernel> kernels;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    if (size_t at = line.find("Compiling entry function '");
        at != StringRef::npos) {
      kernels.emplace_back();
      kernels.back().symbol =
          line.substr(at).split('\'').second.split('\'').first.str();
      continue;
    }
    if (kernels.empty())
      continue;
    AssembledKernel &kernel = kernels.back();
    if (line.contains("bytes stack frame")) {
      kernel.stackBytes = numberBefore(line, "bytes stack frame");
      kernel.spillStoreBytes = numberBefore(line, "bytes spill stores");
      kernel.spillLoadBytes = numberBefore(line, "bytes spill loads");
    } else if (line.contains(" registers")) {
      kernel.registers = numberBefore(line, "registers");
      kernel.sharedBytes = numberBefore(line, "bytes smem");
    }
  }
  return kernels;
}

llvm::Expected<std::vector<AssembledKernel>>
ckopt::assemble(StringRef ptx, unsigned sm, StringRef ptxas) {
  SmallString<128> input, messages;
  int file;
  if (auto error =
          llvm::sys::fs::createTemporaryFile("ckopt", "ptx", file, input))
    return ioError("cannot write a temporary file: " + error.message());
  llvm::scope_exit removeInput([&] { (void)llvm::sys::fs::remove(input); });
  {
    llvm::raw_fd_ostream out(file, /*shouldClose=*/true);
    out << ptx;
    if (out.has_error()) {
      std::string problem = out.error().message();
      out.clear_error();
      return ioError("cannot write '" + input.str() + "': " + problem);
    }
  }
  if (auto error = llvm::sys::fs::createTemporaryFile("ckopt", "log", messages))
    return ioError("cannot write a temporary file: " + error.message());
  llvm::scope_exit removeMessages(
      [&] { (void)llvm::sys::fs::remove(messages); });
  std::string target = "-arch=sm_" + std::to_string(sm);
  std::string problem;
  int code = llvm::sys::ExecuteAndWait(
      ptxas, {ptxas, "-v", target, "-o", "/dev/null", input}, std::nullopt,
      {StringRef(), messages.str(), messages.str()}, 0, 0, &problem);
  auto read = llvm::MemoryBuffer::getFile(messages);
  StringRef text = read ? (*read)->getBuffer() : StringRef();
  if (code)
    return makeError(ExitInternal, "'" + ptxas + "' refuses the PTX for sm_" +
                                       llvm::Twine(sm) + ": " + problem +
                                       text.rtrim());
  return readMessages(text);
}
