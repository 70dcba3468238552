//===- AttentionBounds.cpp - keys that a row looks at ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: packed samples attend to themselves, and where they begin is data:
// numbers of segments. Method: a row's keys lie between the first and the last
// one with its number; where these bounds would fall from one row to the next
// they are moved out. Guarantee: any numbers in any order are right, since what
// lies between bounds is compared one by one if it may differ. Complexity:
// linear for numbers that rise, with padding behind; else each run of a number
// is looked for among the keys before it.
//
//===----------------------------------------------------------------------===//
#include "AttentionBounds.h"

#include <algorithm>

using namespace ckopt::runtime;

void KeyBounds::findSegments(const int64_t *numbers, int32_t *space) const {
  int32_t *first = space, *end = first + a.keys;
  int64_t least = numbers[0], greatest = numbers[0];
  bool isMixed = false, hasEmpty = false;
  for (int64_t i = 0; i < a.keys; ++i) {
    int64_t own = numbers[i];
    first[i] = int32_t(i);
    if (i > 0 && own == numbers[i - 1]) {
      first[i] = first[i - 1];
    } else if (i > 0 && own >= least && own <= greatest) {
      first[i] = int32_t(std::find(numbers, numbers + i, own) - numbers);
      isMixed |= first[i] < i;
    }
    least = std::min(least, own), greatest = std::max(greatest, own);
    end[i] = end[first[i]] = int32_t(i + 1);
  }
  for (int64_t i = a.keys - 1; i > 0; --i)
    first[i - 1] = std::min(first[i - 1], first[i]);
  for (int64_t i = 1; i < a.keys; ++i)
    end[i] = std::max(end[i], end[i - 1]);
  for (int64_t i = 0; i < a.keys; ++i) {
    Keys own = keysOf(i, space);
    hasEmpty |= own.first >= own.second;
  }
  space[2 * a.keys] = isMixed;
  space[2 * a.keys + 1] = hasEmpty;
}

KeyBounds::Keys KeyBounds::keysOf(int64_t row, const int32_t *space) const {
  Keys own{0, a.keys};
  if (a.hasWindow)
    own.first = std::max<int64_t>(row - a.window + 1, 0);
  if (a.causal)
    own.second = std::min(row + a.offset + 1, a.keys);
  if (a.hasSegments) {
    own.first = std::max<int64_t>(own.first, space[row]);
    own.second = std::min<int64_t>(own.second, space[a.keys + row]);
  }
  return own;
}

/// Without segments the rows between the ends have no fewer keys.
bool KeyBounds::hasEmptyRow(const int32_t *space) const {
  if (a.hasSegments)
    return space[2 * a.keys + 1];
  Keys first = keysOf(0, space), last = keysOf(a.queries - 1, space);
  return first.first >= first.second || last.first >= last.second;
}
