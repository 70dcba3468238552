//===- LaneWise.h - functions of scalars, over 32 lanes ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// lanewise<&f> implements an instruction that computes f in each lane; the
// types of its destination and sources are those of f, where bool is a
// predicate. Files that use it are compiled twice, with CKOPT_LANES as `plain`
// or `fast`, so that the loops become vector code where the machine has it. A
// destination may be the same slot as a source, because a lane reads only its
// own values.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_PTX_LANEWISE_H
#define CKOPT_TEST_LIB_CUDASTANDIN_PTX_LANEWISE_H

#include "Decode.h"

#include <tuple>
#include <type_traits>
#include <utility>

namespace standin::ptx::CKOPT_LANES {

/// The 16 bits of a half-precision float.
struct Half {
  uint16_t bits;
};
struct BHalf {
  uint16_t bits;
};

template <typename T>
using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T> inline T fromWord(Word<T> word) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(word);
  else if constexpr (sizeof(T) == 2)
    return T{static_cast<uint16_t>(word)};
  else
    return __builtin_bit_cast(T, word);
}
template <typename T> inline Word<T> toWord(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::make_unsigned_t<T>>(value);
  else if constexpr (sizeof(T) == 2)
    return value.bits;
  else
    return __builtin_bit_cast(Word<T>, value);
}

template <typename T> struct Source {
  Source(const Lanes &lanes, Slot slot)
      : words(reinterpret_cast<const Word<T> *>(lanes.slot(slot))) {}
  T operator[](unsigned lane) const { return fromWord<T>(words[lane]); }
  const Word<T> *words;
};
template <> struct Source<bool> {
  Source(const Lanes &lanes, Slot slot) : bits(*lanes.slot(slot)) {}
  bool operator[](unsigned lane) const { return bits >> lane & 1; }
  uint32_t bits;
};

template <typename R, typename F>
inline void writeLanes(const Lanes &lanes, Slot slot, F value) {
  if constexpr (std::is_same_v<R, bool>) {
    uint32_t flags[kLanes], bits = 0;
    for (unsigned l = 0; l < kLanes; ++l)
      flags[l] = value(l);
    for (unsigned l = 0; l < kLanes; ++l)
      bits |= flags[l] << l;
    uint32_t *word = lanes.slot(slot);
    *word = (*word & ~lanes.active) | (bits & lanes.active);
  } else {
    auto *words = reinterpret_cast<Word<R> *>(lanes.slot(slot));
    if (lanes.active == kAllLanes) {
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
      for (unsigned l = 0; l < kLanes; ++l)
        words[l] = toWord<R>(value(l));
      return;
    }
    for (unsigned l = 0; l < kLanes; ++l)
      if (lanes.active >> l & 1)
        words[l] = toWord<R>(value(l));
  }
}

template <auto Fn, typename R, typename... A, size_t... I>
inline void runLanes(const Instruction &in, Lanes &lanes, R (*)(A...),
                     std::index_sequence<I...>) {
  std::tuple<Source<A>...> sources{Source<A>(lanes, in.slots[1 + I])...};
  writeLanes<R>(lanes, in.slots[0],
                [&](unsigned l) { return Fn(std::get<I>(sources)[l]...); });
}

template <auto Fn> struct LaneWise;
template <typename R, typename... A, R (*Fn)(A...)> struct LaneWise<Fn> {
  static void run(const Instruction &in, Lanes &lanes) {
    runLanes<Fn>(in, lanes, Fn, std::index_sequence_for<A...>());
  }
};
template <auto Fn> inline constexpr Execute lanewise = &LaneWise<Fn>::run;

/// Calls `pick` for the integer type that `type` names; null for other types.
template <typename F> inline Execute byInteger(Type type, F pick) {
  switch (type) {
  case Type::U16:
    return pick(uint16_t());
  case Type::U32:
    return pick(uint32_t());
  case Type::U64:
    return pick(uint64_t());
  case Type::S16:
    return pick(int16_t());
  case Type::S32:
    return pick(int32_t());
  case Type::S64:
    return pick(int64_t());
  default:
    return nullptr;
  }
}
template <typename F> inline Execute byBits(Type type, F pick) {
  switch (type) {
  case Type::B16:
    return pick(uint16_t());
  case Type::B32:
    return pick(uint32_t());
  case Type::B64:
    return pick(uint64_t());
  default:
    return nullptr;
  }
}

} // namespace standin::ptx::CKOPT_LANES

#endif // CKOPT_TEST_LIB_CUDASTANDIN_PTX_LANEWISE_H
