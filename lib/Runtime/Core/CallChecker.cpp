//===- CallChecker.cpp - looking at values between kernels ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks results in code compiled with a call after each kernel: finds the
// first value that is not finite, and whether a recomputed value has the bits
// of its first computation. The latter keeps 128 bits a value (two
// multiply-xorshift lanes; a chance of 2^-128 that a difference hides, against
// accidents, not adversaries), or a copy outside of the arena, which shows
// where the first difference lies. Linear in the bytes read.
//
//===----------------------------------------------------------------------===//
#include "CallChecker.h"

#include "Session.h"

#include <cmath>
#include <cstring>

using namespace ckopt::runtime;

static std::string nameOf(const CallInfo &call) {
  return "kernel " + call.kernel +
         (call.source.empty() ? "" : " (from " + call.source + ")");
}

CallChecker::Hash CallChecker::hashOf(const char *data, int64_t bytes) {
  Hash h{0x243F6A8885A308D3ull, 0x13198A2E03707344ull ^ uint64_t(bytes)};
  auto mix = [&](uint64_t word) {
    h.a = (h.a ^ word) * 0x9E3779B97F4A7C15ull;
    h.a ^= h.a >> 32;
    h.b = (h.b + word) * 0xD6E8FEB86659FD93ull;
    h.b ^= h.b >> 29;
  };
  int64_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    uint64_t word;
    std::memcpy(&word, data + at, 8);
    mix(word);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, data + at, static_cast<size_t>(bytes - at));
  mix(tail);
  return h;
}

void CallChecker::startStep() {
  failure = {};
  if (verify)
    prepareVerify();
  if (active())
    last = std::chrono::steady_clock::now();
}

void CallChecker::prepareVerify() {
  if (!repeated.empty() || manifest.calls.empty())
    return;
  repeated.assign(manifest.calls.size(), 0);
  hashes.resize(manifest.calls.size());
  kept.resize(manifest.calls.size());
  for (const CallInfo &call : manifest.calls)
    if (call.originalCall >= 0)
      repeated[call.originalCall] = 1;
}

int32_t CallChecker::callDone(int64_t index, char *arena) {
  if (index < 0 || static_cast<size_t>(index) >= manifest.calls.size())
    return 0;
  if (hook) {
    auto now = std::chrono::steady_clock::now();
    hook(user, index, std::chrono::duration<double>(now - last).count());
  }
  int32_t status = 0;
  if (checkFinite)
    status = checkValues(manifest.calls[index], arena);
  if (status == 0 && verify)
    status = verifyCall(index, arena);
  if (hook)
    last = std::chrono::steady_clock::now();
  return status;
}

int32_t CallChecker::checkValues(const CallInfo &call, const char *arena) {
  for (size_t r = 0; r < call.results.size(); ++r) {
    const CallResult &result = call.results[r];
    if (static_cast<uint32_t>(result.dtype) >
        static_cast<uint32_t>(DType::BF16))
      continue;
    int64_t size = dtypeSize(result.dtype);
    for (int64_t at = 0; at < result.bytes; at += size) {
      double value = loadElement(result.dtype, arena + result.offset + at);
      if (std::isfinite(value))
        continue;
      failure = nameOf(call) + ": result " + std::to_string(r) + ", element " +
                std::to_string(at / size) + " in memory order is " +
                (std::isnan(value) ? "NaN" : "infinite");
      return CKRT_NON_FINITE;
    }
  }
  return 0;
}

void CallChecker::record(int64_t index, const char *arena) {
  const CallInfo &call = manifest.calls[index];
  hashes[index].clear();
  kept[index].clear();
  for (const CallResult &result : call.results) {
    const char *data = arena + result.offset;
    hashes[index].push_back(hashOf(data, result.bytes));
    if (keep)
      kept[index].emplace_back(data, static_cast<size_t>(result.bytes));
  }
}

int32_t CallChecker::verifyCall(int64_t index, const char *arena) {
  const CallInfo &call = manifest.calls[index];
  if (repeated[index])
    record(index, arena);
  if (call.originalCall < 0)
    return 0;
  int64_t original = call.originalCall;
  for (size_t r = 0; r < call.results.size(); ++r) {
    const CallResult &result = call.results[r];
    const char *data = arena + result.offset;
    if (result.bytes == 0 || r >= hashes[original].size() ||
        hashOf(data, result.bytes) == hashes[original][r])
      continue;
    failure = nameOf(call) + ": result " + std::to_string(r) +
              " of recomputation (call " + std::to_string(index) +
              ") differs from its first computation (call " +
              std::to_string(original) + ")";
    if (r < kept[original].size()) {
      const std::string &first = kept[original][r];
      int64_t size = dtypeSize(result.dtype), at = 0;
      while (at < result.bytes &&
             std::memcmp(first.data() + at, data + at, size) == 0)
        at += size;
      failure += "; first at element " + std::to_string(at / size) +
                 " in memory order: " +
                 std::to_string(loadElement(result.dtype, first.data() + at)) +
                 ", then " +
                 std::to_string(loadElement(result.dtype, data + at));
    } else {
      failure += "; " + Setting("verify-remat", "keep") +
                 " shows the first differing element";
    }
    return CKRT_VERIFY;
  }
  return 0;
}
