//===- PythonSource.cpp - shapes out of a line of Python ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "PythonSource.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::SmallVector;
using llvm::StringRef;

/// Parses "[:, None, None]" or "[None]", which give a value of `rank`
/// dimensions.
static std::optional<Widened> widenedByIndex(StringRef items, size_t rank) {
  size_t added = 0, kept = 0, last = 0;
  SmallVector<StringRef> list;
  items.split(list, ',');
  for (StringRef item : list) {
    item = item.trim();
    if (item == "None")
      last = kept + added++;
    else if (item == ":")
      ++kept;
    else if (item != "..." || kept || added != 1)
      return std::nullopt; // "[None, ...]" names no more dimensions
  }
  if (kept == 1 && added > 0 && kept + added == rank)
    return Widened{};
  if (added == 1 && kept + added <= rank)
    return Widened{last};
  return std::nullopt;
}

std::optional<Widened> onnx_frontend::widenedBy(StringRef source, size_t rank) {
  auto upTo = [](StringRef text, char end) {
    return text.take_until([=](char c) { return c == end; });
  };
  if (source.consume_front("["))
    return widenedByIndex(upTo(source, ']'), rank);
  if (source.consume_front(".view(") || source.consume_front(".reshape(")) {
    size_t others = 0;
    SmallVector<StringRef> sizes;
    upTo(source, ')').split(sizes, ',');
    for (StringRef size : sizes)
      others += size.trim() != "1";
    return others == 1 ? std::optional(Widened{}) : std::nullopt;
  }
  size_t calls = 0;
  int64_t dim = 0;
  while (source.consume_front(".unsqueeze(")) {
    StringRef number = upTo(source, ')');
    if (number.getAsInteger(10, dim))
      return std::nullopt;
    source = source.drop_front(std::min(source.size(), number.size() + 1));
    ++calls;
  }
  if (calls > 1 && calls + 1 == rank)
    return Widened{};
  dim += dim < 0 ? int64_t(rank) : 0;
  return calls == 1 && dim >= 0 && dim < int64_t(rank)
             ? std::optional(Widened{size_t(dim)})
             : std::nullopt;
}

bool onnx_frontend::widensFirst(StringRef source) {
  if (source.consume_front(".unsqueeze("))
    return source.starts_with("0)");
  if (!source.consume_front("[None"))
    return false;
  StringRef others = source.take_until([](char c) { return c == ']'; });
  return llvm::all_of(others, [](char c) {
    return c == ',' || c == ' ' || c == ':' || c == '.';
  });
}

bool onnx_frontend::repeatsAlongFirst(StringRef source) {
  auto [first, rest] = source.split(',');
  if (!first.starts_with(".repeat(") || rest.empty())
    return false;
  // The first argument may be a call itself; the others may not.
  SmallVector<StringRef> others;
  rest.take_until([](char c) { return c == ')'; }).split(others, ',');
  return llvm::all_of(others,
                      [](StringRef size) { return size.trim() == "1"; });
}
