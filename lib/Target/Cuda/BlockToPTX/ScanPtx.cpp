//===- ScanPtx.cpp - refuses PTX that is wrong or slow --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks the text before it leaves the compiler, independently of what LLVM
// did. Each finding stands for code that the assembler accepts and that is
// still wrong, slow, or different from machine to machine. One pass over the
// lines; an instruction is examined by its dotted parts.
//
//===----------------------------------------------------------------------===//
#include "PtxText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ckopt;
using namespace ckopt::blockform;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

static constexpr char kUnaskedF64[] = "f64 that the kernel did not ask for";

/// Approximations that a kernel may ask for (block.approx_*).
static constexpr StringRef kApproximations[] = {"ex2.approx.ftz.f32",
                                                "rcp.approx.ftz.f32"};

/// Returns the bits of a float type's name; 0 for other parts of an
/// instruction's name.
static unsigned floatBits(StringRef part) {
  return llvm::StringSwitch<unsigned>(part)
      .Cases({"f16", "f16x2", "bf16", "bf16x2"}, 16)
      .Cases({"f32", "f32x2", "tf32"}, 32)
      .Case("f64", 64)
      .Default(0);
}

static bool isRounding(StringRef part) {
  return llvm::is_contained(
      {"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"}, part);
}

namespace {
/// Scans the text line by line.
class Scanner {
public:
  Scanner(StringRef text, ArrayRef<std::string> f64Kernels, bool tf32,
          ArrayRef<std::string> approximating, bool programmatic)
      : text(text), f64Kernels(f64Kernels), tf32(tf32),
        approximating(approximating), programmatic(programmatic) {}
  std::vector<PtxViolation> run();

private:
  void scanLine(StringRef line);
  void scanInstruction(StringRef name);
  void scanBeforeWait();
  void found(const char *reason) {
    violations.push_back({kernel.str(), number, line.str(), reason});
  }

  StringRef text, line, kernel;
  ArrayRef<std::string> f64Kernels;
  bool tf32;
  ArrayRef<std::string> approximating;
  bool programmatic, waits = false; ///< waits: for a kernel's wait for others
  unsigned number = 0;
  std::vector<PtxViolation> violations;
};
} // namespace

/// Returns the name of the kernel that begins in this line, or nothing.
static StringRef entryOf(StringRef line) {
  size_t at = line.find(".entry ");
  if (at == StringRef::npos)
    return {};
  return line.substr(at + 7).ltrim().take_until(
      [](char c) { return c == '(' || llvm::isSpace(c); });
}

/// Returns the instruction's name without predicate and operands.
static StringRef instructionOf(StringRef line) {
  if (line.consume_front("@"))
    line = line.drop_until(llvm::isSpace).ltrim();
  return line.take_until([](char c) { return llvm::isSpace(c) || c == ';'; });
}

void Scanner::scanInstruction(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  StringRef op = parts.front();
  bool rounded = llvm::any_of(parts, isRounding);
  SmallVector<unsigned> floats;
  unsigned types = 0;
  for (StringRef part : llvm::drop_begin(parts)) {
    unsigned bits = floatBits(part);
    if (bits)
      floats.push_back(bits);
    // Counts type suffixes: b32, s64, u16, pred, ...
    types += bits || (part.size() > 1 && llvm::is_contained("bsu", part[0]) &&
                      llvm::all_of(part.drop_front(), llvm::isDigit));
  }
  if (llvm::is_contained(parts, "approx") ||
      llvm::is_contained(parts, "full")) {
    if (!llvm::is_contained(kApproximations, name))
      found("approximate function");
    else if (!llvm::is_contained(approximating, kernel))
      found("approximate function that the kernel did not ask for");
    return;
  }
  if (llvm::is_contained(parts, "local"))
    found("memory of each thread in place of registers");
  if (floats.empty())
    return;
  static constexpr StringRef arithmetic[] = {"add", "sub", "mul",  "mad",
                                             "fma", "div", "sqrt", "rcp"};
  if (llvm::is_contained(arithmetic, op) && !llvm::is_contained(parts, "rn"))
    found("float arithmetic that does not say to round to nearest");
  // Only a conversion from a narrower to a wider float never rounds.
  bool widens = floats.size() == 2 && types == 2 && floats[0] > floats[1];
  if (op == "cvt" && !rounded && !widens)
    found("conversion of a float that does not say how to round");
  if (op == "atom" || op == "red")
    found("atomic operation on floats");
  if (!tf32 && llvm::is_contained(parts, "tf32"))
    found("operands rounded to tf32 unasked");
  if (llvm::is_contained(floats, 64u) &&
      !llvm::is_contained(f64Kernels, kernel))
    found(kUnaskedF64);
}

/// Looks for what must not come before a kernel's wait: only parameters and
/// numbers of threads do not depend on kernels before, and a branch may lead
/// around it.
void Scanner::scanBeforeWait() {
  StringRef name = instructionOf(line);
  if (name == "griddepcontrol.wait")
    waits = false;
  else if (name == "ret" || name == "exit" || name == "bra" ||
           name.starts_with("bra.") || name.starts_with("brx.") ||
           line.starts_with("@") || line.starts_with("$") ||
           line.starts_with("}"))
    found("code that may leave out the wait for other kernels");
  else if (!name.starts_with("ld.param") &&
           llvm::is_contained({"ld", "st", "atom", "red", "cp", "prefetch"},
                              name.split('.').first))
    found("access of memory before the wait for other kernels");
}

/// Returns whether `word` is a whole name in the line.
static bool hasName(StringRef line, StringRef word) {
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; };
  for (size_t at = line.find(word); at != StringRef::npos;
       at = line.find(word, at + 1)) {
    StringRef after = line.substr(at + word.size());
    if ((at == 0 || !isPart(line[at - 1])) &&
        (after.empty() || !isPart(after.front())))
      return true;
  }
  return false;
}

void Scanner::scanLine(StringRef full) {
  line = full.take_front(full.find("//")).trim();
  if (line.empty())
    return;
  if (StringRef name = entryOf(line); !name.empty()) {
    kernel = name;
    waits = programmatic;
  } else if (waits) {
    scanBeforeWait();
  }
  if (line.contains(".extern") && line.contains(".func"))
    found("function that nobody links");
  if (line.contains("__dynamic_shmem__"))
    found("dynamic shared memory");
  if (hasName(line, "malloc"))
    found("memory taken while running");
  if (line.starts_with(".")) {
    if (line.starts_with(".local"))
      found("memory of each thread in place of registers");
  } else if (llvm::isAlpha(line.front()) || line.front() == '@') {
    scanInstruction(instructionOf(line));
  }
  if (full.starts_with("}"))
    kernel = {};
}

std::vector<PtxViolation> Scanner::run() {
  while (!text.empty()) {
    auto [first, rest] = text.split('\n');
    text = rest;
    ++number;
    scanLine(first);
  }
  return std::move(violations);
}

std::vector<PtxViolation>
ckopt::scanPtx(StringRef text, ArrayRef<std::string> f64Kernels, bool tf32,
               ArrayRef<std::string> approximating, bool programmatic) {
  return Scanner(text, f64Kernels, tf32, approximating, programmatic).run();
}

bool blockform::isAboutF64(const PtxViolation &violation) {
  return violation.reason == kUnaskedF64;
}

/// Returns the dotted parts of an access of global memory; nothing for other
/// instructions.
static SmallVector<StringRef> partsOfAccess(StringRef instruction) {
  SmallVector<StringRef> parts;
  instruction.split(parts, '.');
  if ((parts[0] != "ld" && parts[0] != "st" && parts[0] != "cp") ||
      !llvm::is_contained(parts, "global"))
    parts.clear();
  return parts;
}

/// Counts an access of global memory by the line's instruction.
static void countAccess(StringRef line, ArrayRef<StringRef> parts,
                        PtxKernel &kernel) {
  unsigned bits = 0, lanes = 1;
  if (parts[0] ==
      "cp") // [to], [from], bytes of the copy and bytes that are read
    (void)line.rsplit(']').second.ltrim(", ").consumeInteger(10, bits);
  bits *= 8;
  for (StringRef part : llvm::drop_begin(parts)) {
    if (part.consume_front("v"))
      (void)part.getAsInteger(10, lanes);
    else if (!part.empty() && llvm::is_contained("bfsu", part[0]))
      (void)part.drop_front().getAsInteger(10, bits);
  }
  ++(bits * lanes >= 128 ? kernel.wideAccesses : kernel.narrowAccesses);
}

/// Returns whether loads behind this line may have to wait for those before it:
/// a label, a branch, a barrier or a predicate. Calls do not occur.
static bool endsStretch(StringRef line, StringRef instruction) {
  return line.starts_with("$") || line.starts_with("@") ||
         instruction.starts_with("bra") || instruction.starts_with("bar") ||
         instruction.starts_with("ret");
}

void blockform::countAccesses(StringRef text,
                              llvm::MutableArrayRef<PtxKernel> kernels) {
  llvm::StringMap<PtxKernel *> bySymbol;
  for (PtxKernel &kernel : kernels)
    bySymbol[kernel.symbol] = &kernel;
  PtxKernel *inside = nullptr;
  int64_t together = 0;
  while (!text.empty()) {
    auto [full, rest] = text.split('\n');
    text = rest;
    if (StringRef name = entryOf(full); !name.empty())
      inside = bySymbol.lookup(name);
    if (!inside)
      continue;
    StringRef line = full.trim(), instruction = instructionOf(line);
    if (endsStretch(line, instruction))
      together = 0;
    SmallVector<StringRef> parts = partsOfAccess(instruction);
    if (parts.empty())
      continue;
    countAccess(line, parts, *inside);
    if (parts[0] != "st") {
      inside->loadStretches += ++together == 1;
      inside->mostLoads = std::max(inside->mostLoads, together);
    }
  }
}
