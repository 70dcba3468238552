//===- RandomWords.h - the random numbers of an op --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_REFERENCE_RANDOMWORDS_H
#define CKOPT_LIB_REFERENCE_RANDOMWORDS_H

#include "Models.h"
#include "ckopt/Base/Philox.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"

namespace ckopt::reference {

/// The random words of (seed, step, site); element e has word e mod 4 of block
/// e / 4. Elements of rank r, the upper half of step, count on from those of
/// the ranks before.
class RandomWords {
public:
  /// Takes seed and step from the operands of `op`, and the site from its
  /// attribute, which inside a kernel is an index into the call's scalars; the
  /// op draws `count` words.
  template <typename Op>
  static llvm::FailureOr<RandomWords>
  get(Op op, const Tensor &seed, const Tensor &step,
      const Environment &environment, int64_t count) {
    int64_t site =
        op->template getAttrOfType<mlir::IntegerAttr>(kSiteAttr).getInt();
    if (environment.scalars) {
      if (site < 0 || site >= int64_t(environment.scalars->size()))
        return op.emitOpError("site ")
               << site << " is outside of the call's "
               << environment.scalars->size() << " scalars";
      site = (*environment.scalars)[size_t(site)];
    }
    uint64_t number = uint64_t(step.integer(0));
    return RandomWords(uint64_t(seed.integer(0)), uint32_t(number),
                       uint32_t(site), (number >> 32) * (uint64_t(count) / 4));
  }
  PhiloxCounter block(int64_t element) const {
    uint64_t number = uint64_t(element) / 4 + firstBlock;
    return philox4x32({uint32_t(number), uint32_t(number >> 32), step, site},
                      key);
  }
  /// Returns a number uniform in [0, 1), a multiple of 2^-24.
  static double uniform(uint32_t word) { return uniform24(word); }

private:
  RandomWords(uint64_t seed, uint32_t step, uint32_t site, uint64_t firstBlock)
      : key{uint32_t(seed), uint32_t(seed >> 32)}, step(step), site(site),
        firstBlock(firstBlock) {}
  PhiloxKey key;
  uint32_t step, site;
  uint64_t firstBlock;
};

} // namespace ckopt::reference

#endif // CKOPT_LIB_REFERENCE_RANDOMWORDS_H
