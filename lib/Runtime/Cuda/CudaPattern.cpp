//===- CudaPattern.cpp - which bytes of a device's arena were written -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills an arena with the pattern, and looks for the highest byte that a step
// changed. Words are the device's work (DevicePattern.h); the host looks at the
// highest piece in which one changed, and at less than a word at a range's
// ends. Behind the arena lie 64 KiB of the pattern, which no step may change,
// and behind these the marks of pieces.
//
//===----------------------------------------------------------------------===//
#include "CudaBackend.h"

#include <algorithm>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

static constexpr int64_t kTailBytes = 64 << 10;

int64_t CudaBackend::bytesBehind() const {
  const int64_t all = program.manifest.arenaBytes + kTailBytes;
  return hasPattern() ? kTailBytes + 4 * (DevicePattern::piecesOf(all) + 1) : 0;
}

ckrt_status CudaBackend::makePattern() {
  auto made = std::make_unique<DevicePattern>(engine->driver(), engine->at(0));
  if (Result result = made->create(); result != kSuccess)
    return engine->failed("cannot load the code that fills the arena", result);
  pattern = std::move(made);
  segments = {{0, engine->arenaBytes() + kTailBytes, options.pattern_seed}};
  return fillSegment(segments.front());
}

/// The whole words of a range.
static PatternSegment wordsOf(const PatternSegment &range) {
  const int64_t begin = std::min((range.begin + 7) / 8 * 8, range.end);
  return {begin, std::max(range.end / 8 * 8, begin), range.seed};
}

ckrt_status CudaBackend::fillSegment(const PatternSegment &range) {
  const PatternSegment words = wordsOf(range);
  for (auto [begin, end] :
       {std::pair(range.begin, words.begin), std::pair(words.end, range.end)}) {
    char bytes[8];
    writePattern(bytes, begin, end, range.seed);
    if (begin < end)
      if (ckrt_status status = upload(begin, bytes, end - begin))
        return status;
  }
  const Driver &cuda = engine->driver();
  Result result = cuda.streamWaitEvent(stepStream, copyDone, 0);
  if (result == kSuccess)
    result = pattern->fill(words, stepStream);
  // What is copied to second places waits for no step, but for this.
  for (Event event : {stepDone, fedTaken})
    if (result == kSuccess)
      result = cuda.eventRecord(event, stepStream);
  return result == kSuccess ? CKRT_OK : broken("cannot fill the arena", result);
}

ckrt_status CudaBackend::highestByte(const PatternSegment &range,
                                     int64_t &high) {
  std::vector<char> bytes(static_cast<size_t>(range.end - range.begin));
  if (ckrt_status status =
          download(bytes.data(), range.begin, range.end - range.begin))
    return status;
  high = highestChange(bytes.data(), range.begin, range.end, range.seed);
  return CKRT_OK;
}

ckrt_status CudaBackend::highestWord(const PatternSegment &words,
                                     int64_t &high) {
  const Driver &cuda = engine->driver();
  const int64_t marks = engine->arenaBytes() + kTailBytes;
  std::vector<uint32_t> marked(
      static_cast<size_t>(DevicePattern::piecesOf(words.end - words.begin)));
  Result result = cuda.streamWaitEvent(stepStream, copyDone, 0);
  if (result == kSuccess)
    result = pattern->compare(words, engine->at(marks), stepStream);
  if (result == kSuccess)
    result = cuda.eventRecord(stepDone, stepStream);
  if (result != kSuccess)
    return broken("cannot look at the arena", result);
  if (ckrt_status status =
          download(reinterpret_cast<char *>(marked.data()), marks,
                   static_cast<int64_t>(marked.size()) * 4))
    return status;
  high = words.begin;
  for (size_t piece = marked.size(); piece-- > 0;)
    if (marked[piece]) {
      const int64_t begin = words.begin + static_cast<int64_t>(piece) *
                                              DevicePattern::kPieceBytes;
      return highestByte(
          {begin, std::min(begin + DevicePattern::kPieceBytes, words.end),
           words.seed},
          high);
    }
  return CKRT_OK;
}

/// Returns the end of a range's highest changed byte, or its begin.
ckrt_status CudaBackend::highestOf(const PatternSegment &range, int64_t &high) {
  const PatternSegment words = wordsOf(range);
  high = words.end;
  ckrt_status status = CKRT_OK;
  if (words.end < range.end)
    status = highestByte({words.end, range.end, range.seed}, high);
  if (status == CKRT_OK && high == words.end && words.begin < words.end)
    status = highestWord(words, high);
  if (status == CKRT_OK && high == words.begin && range.begin < words.begin)
    status = highestByte({range.begin, words.begin, range.seed}, high);
  return status;
}

ckrt_status CudaBackend::checkTail(const std::string &after) {
  const int64_t begin = engine->arenaBytes();
  int64_t high = begin;
  if (ckrt_status status =
          highestByte({begin, begin + kTailBytes, segments.back().seed}, high))
    return status;
  return high == begin
             ? CKRT_OK
             : fail(CKRT_EXECUTION, engine->name() + ": " + after +
                                        " wrote behind the arena, up to " +
                                        std::to_string(high - begin) +
                                        " bytes beyond its end");
}

ckrt_status CudaBackend::measure(int64_t &bytes) {
  if (!engine)
    return repeatFailure();
  Current current(engine->driver(), engine->context());
  if (ckrt_status status = checkTail("a run"))
    return status;
  bytes = peak;
  for (auto it = segments.rbegin(); it != segments.rend(); ++it) {
    int64_t low = std::max(it->begin, peak), high = low;
    int64_t top = std::min(it->end, engine->arenaBytes());
    if (low >= top)
      continue;
    if (ckrt_status status = highestOf({low, top, it->seed}, high))
      return status;
    if (high > low) {
      bytes = peak = high;
      return CKRT_OK;
    }
  }
  return CKRT_OK;
}

ckrt_status CudaBackend::refill(const std::vector<ArenaRange> &keep,
                                uint64_t seed) {
  int64_t before;
  if (ckrt_status status = measure(before))
    return status;
  Current current(engine->driver(), engine->context());
  segments = cutAround(keep, engine->arenaBytes() + kTailBytes,
                       segments.front().seed, seed);
  for (const PatternSegment &segment : segments)
    if (!isKept(segment, keep))
      if (ckrt_status status = fillSegment(segment))
        return status;
  return CKRT_OK;
}
