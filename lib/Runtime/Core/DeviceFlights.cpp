//===- DeviceFlights.cpp - collectives that go on beside kernels ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DeviceFlights.h"

#include <map>

using namespace ckopt::runtime;

std::vector<int64_t> ckopt::runtime::startsOfWaits(const Manifest &m,
                                                   std::string &error) {
  std::vector<int64_t> starts(m.calls.size(), -1);
  /// By function and offset of the first result: what is in flight.
  std::map<std::pair<int32_t, int64_t>, int64_t> flights;
  auto wrong = [&](size_t call, const char *what) {
    if (error.empty())
      error = "call " + std::to_string(call) + " (" + m.calls[call].source +
              "): " + what;
  };
  for (size_t c = 0; c < m.calls.size(); ++c) {
    const CallInfo &call = m.calls[c];
    if (call.primitive < 0)
      continue;
    const PrimitiveDesc &desc =
        m.primitives[static_cast<size_t>(call.primitive)];
    if (desc.kind == PrimitiveKind::CollectiveWait) {
      auto found = call.results.empty()
                       ? flights.end()
                       : flights.find({call.function, call.results[0].offset});
      if (found == flights.end()) {
        wrong(c, "waits for what nothing has begun");
        continue;
      }
      starts[c] = found->second;
      flights.erase(found);
    } else if (desc.allReduce.started) {
      size_t first = desc.allReduce.elements.size();
      if (first == 0 || call.launches.empty() ||
          call.launches[0].pointers.size() <= first)
        wrong(c, "begins a collective of nothing");
      else if (!flights
                    .insert({{call.function,
                              call.launches[0].pointers[first].offset},
                             static_cast<int64_t>(c)})
                    .second)
        wrong(c, "begins a collective where another one is under way");
    }
  }
  for (const auto &[place, start] : flights)
    wrong(static_cast<size_t>(start), "begins what nothing waits for");
  return starts;
}
