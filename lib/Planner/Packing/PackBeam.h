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

/// What searchPacking() does, by beam search: much sooner where a packing
/// exists that loses next to nothing, seldom a proof.
class PackBeam {
public:
  PackBeam(std::vector<SearchShape> shapes, int32_t capacity, uint64_t seed);
  ~PackBeam();

  /// Searches until the deadline passes; the next call goes on there.
  SearchOutcome run(Deadline &deadline, std::vector<int32_t> &offsets);

  class Beam;

private:
  std::vector<SearchShape> shapes;
  std::unique_ptr<Beam> beam;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PACKING_PACKBEAM_H
