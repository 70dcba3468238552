//===- Memory.cpp - live global memory ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Memory.h"

#include <algorithm>

using namespace standin::ptx;

static constexpr uint64_t kPageBytes = 4096;

void GlobalMemory::setRegions(const std::vector<Region> &regions) {
  last = nullptr;
  std::vector<std::unique_ptr<Tracked>> kept;
  for (const Region &region : regions) {
    auto known = std::find_if(tracked.begin(), tracked.end(), [&](auto &one) {
      return one && one->region.begin == region.begin &&
             one->region.bytes == region.bytes;
    });
    if (known != tracked.end()) {
      (*known)->region.name = region.name;
      kept.push_back(std::move(*known));
      continue;
    }
    kept.push_back(std::make_unique<Tracked>());
    kept.back()->region = region;
    kept.back()->pages.resize((region.begin + region.bytes) / kPageBytes -
                              region.begin / kPageBytes + 1);
  }
  tracked = std::move(kept);
}

GlobalMemory::Tracked *GlobalMemory::find(uint64_t address, uint64_t bytes) {
  auto holds = [&](const Region &region) {
    return address >= region.begin && bytes <= region.bytes &&
           address - region.begin <= region.bytes - bytes;
  };
  if (last && holds(last->region))
    return last;
  for (auto &one : tracked)
    if (holds(one->region))
      return last = one.get();
  return nullptr;
}

Granule *GlobalMemory::granules(Tracked &in, uint64_t address,
                                unsigned granule) {
  Page &page = in.pages[address / kPageBytes - in.region.begin / kPageBytes];
  if (page.granule != granule) {
    page.granule = granule;
    page.granules = std::make_unique<Granule[]>(kPageBytes / granule);
  }
  return &page.granules[address % kPageBytes / granule];
}
