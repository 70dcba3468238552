//===- PackBeam.h - packing by beam search ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PACKING_PACKBEAM_H
#define CKOPT_LIB_PLANNER_PACKING_PACKBEAM_H

#include "Packing/PackSearch.h"

#include <memory>

namespace ckopt::planner {

/// Searches for packings like searchPacking(), but by beam search: much faster
/// if a packing with almost no waste exists, but it rarely proves anything.
class PackBeam {
public:
  PackBeam(std::vector<SearchShape> shapes, int32_t capacity, uint64_t seed);
  ~PackBeam();

  /// Searches until the deadline passes; the next call continues from there.
  SearchOutcome run(Deadline &deadline, std::vector<int32_t> &offsets);

  class Beam;

private:
  std::vector<SearchShape> shapes;
  std::unique_ptr<Beam> beam;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PACKING_PACKBEAM_H
