//===- Accessor.h - one access of memory, checked ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the bytes of an access of one lane, after it was checked: alignment,
// live memory of its state space, races, bytes that nobody wrote or that a copy
// under way writes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_PTX_ACCESSOR_H
#define CKOPT_TEST_LIB_CUDASTANDIN_PTX_ACCESSOR_H

#include "Execution.h"

namespace standin::ptx {

class Accessor {
public:
  Accessor(const Instruction &in, Lanes &lanes, bool write, Space space,
           unsigned bytes)
      : in(in), lanes(lanes), execution(*lanes.warp->execution), write(write),
        space(space), bytes(bytes) {}
  /// Returns where the bytes are, or null after a fault.
  char *place(uint64_t address, unsigned lane);
  /// The access begins or ends a copy: bytes of one under way may be accessed.
  bool begins = false;

private:
  char *inShared(uint64_t address);
  char *inGlobal(uint64_t address);
  char *inParameters(uint64_t address);
  char *inStatics(uint64_t address);
  bool check(Granule *granules, unsigned granule, bool shared);
  char *fault(const std::string &why) {
    execution.reason = why;
    lanes.fault = execution.reason.c_str();
    return nullptr;
  }
  std::string number(uint64_t address) const {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", (unsigned long long)address);
    return text;
  }
  char *race(const Granule &granule, Conflict conflict, bool shared);

  const Instruction &in;
  Lanes &lanes;
  Execution &execution;
  bool write;
  Space space;
  unsigned bytes;
  Access by{};
};

/// Counts the sectors of one access of a warp; that of a lane, aligned, lies in
/// one.
void countSectors(Traffic &traffic, const uint64_t *addresses, uint32_t active,
                  unsigned bytes);

} // namespace standin::ptx

#endif // CKOPT_TEST_LIB_CUDASTANDIN_PTX_ACCESSOR_H
