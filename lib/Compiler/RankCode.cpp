//===- RankCode.cpp - one rank compiles, all run the code -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rank 0 plans and makes machine code, of the processor features that all ranks
// have; the others get both as bytes, whose hash they check. What goes wrong on
// rank 0 is an error on all.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Compiler/Together.h"
#include "ckopt/Runtime/KeepAlive.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace ckopt;

//===----------------------------------------------------------------------===//
// Bytes of rank 0
//===----------------------------------------------------------------------===//

namespace {
/// What rank 0 says before its bytes follow.
struct Announcement {
  int64_t code = ExitOk; ///< else the bytes say why
  int64_t bytes = 0;
  uint64_t hash = 0;
};
} // namespace

/// Gives rank 0's text to all ranks, in messages of a size that engines take.
static llvm::Error broadcastText(const Ranks &ranks, Announcement &head,
                                 std::string &text) {
  constexpr int64_t kMost = int64_t(256) << 20;
  head.bytes = int64_t(text.size());
  head.hash = llvm::xxh3_64bits(llvm::StringRef(text));
  if (llvm::Error error = ranks.broadcast(head))
    return error;
  text.resize(size_t(head.bytes));
  for (int64_t at = 0; at < head.bytes; at += kMost)
    if (llvm::Error error = ranks.broadcastBytes(
            text.data() + at, std::min(kMost, head.bytes - at)))
      return error;
  if (llvm::xxh3_64bits(llvm::StringRef(text)) != head.hash)
    return rankError("what rank 0 compiled came to " + ranks.name() +
                     " as other bytes than it sent");
  return llvm::Error::success();
}

/// Runs `make` on rank 0, and `take` with what it returned on the others.
/// `messages` is told why rank 0 failed, and the others' errors say it.
static llvm::Error
fromMain(const Ranks &ranks, MessageHandler &messages,
         llvm::function_ref<llvm::Expected<std::string>()> make,
         llvm::function_ref<llvm::Error(llvm::StringRef)> take) {
  runtime::KeepAlive alive;
  std::string text;
  Announcement head;
  ErrorText why;
  if (ranks.isMain()) {
    ErrorLines told;
    MessageHandler before = messages;
    messages = [&](const Message &message) {
      told.add(message);
      before(message);
    };
    auto own = make();
    messages = std::move(before);
    if (!own && ranks.failureEndsAll())
      return own.takeError();
    if (own) {
      text = std::move(*own);
    } else {
      why = takeErrorText(own.takeError());
      head.code = why.code;
      text = (why.wasTold ? why.after(told.take()) : why.message).pack();
    }
  }
  llvm::Error sent = broadcastText(ranks, head, text);
  if (why.code != ExitOk) {
    llvm::consumeError(std::move(sent));
    return why.wasTold ? toldError(why.code, why.message)
                       : makeError(why.code, why.message);
  }
  if (sent)
    return sent;
  if (head.code != ExitOk)
    return makeError(ExitCode(head.code),
                     "rank 0: " + MessageText::unpack(text));
  return ranks.isMain() ? llvm::Error::success() : take(text);
}

//===----------------------------------------------------------------------===//
// Plans and code
//===----------------------------------------------------------------------===//

llvm::Error ckopt::planOnMain(Compilation &compilation) {
  const Ranks &ranks = compilation.given().ranks;
  if (!ranks.areSeveral())
    return compilation.plan();
  auto plan = [&]() -> llvm::Expected<std::string> {
    if (llvm::Error error = compilation.plan())
      return std::move(error);
    std::string text;
    llvm::raw_string_ostream stream(text);
    mlir::OpPrintingFlags flags;
    flags.enableDebugInfo(/*enable=*/true, /*prettyForm=*/false);
    compilation.module().print(stream, flags);
    return text;
  };
  return fromMain(
      ranks, compilation.options().messages, plan,
      [&](llvm::StringRef text) { return compilation.adopt(text); });
}

llvm::Error ckopt::emitOnMain(Compilation &compilation) {
  const Ranks &ranks = compilation.given().ranks;
  if (!ranks.areSeveral())
    return compilation.emit();
  auto emit = [&]() -> llvm::Expected<std::string> {
    if (llvm::Error error = compilation.emit())
      return std::move(error);
    return compilation.code()->pack();
  };
  auto take = [&](llvm::StringRef packed) -> llvm::Error {
    auto taken = packed.empty() ? llvm::Expected<bool>(false)
                                : compilation.adoptCode(packed);
    if (!taken)
      return taken.takeError();
    return *taken ? llvm::Error::success() : compilation.emit();
  };
  return fromMain(ranks, compilation.options().messages, emit, take);
}
