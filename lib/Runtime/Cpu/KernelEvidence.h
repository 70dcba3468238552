//===- KernelEvidence.h - which of oneDNN's kernels are right ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_KERNELEVIDENCE_H
#define CKOPT_LIB_RUNTIME_CPU_KERNELEVIDENCE_H

#include "ckopt/Runtime/Primitive.h"

#include <optional>

namespace ckopt::runtime {

/// Says of which kernels it is known that they are right, and from what.
class CKRT_EXPORT KernelEvidence {
public:
  struct Finding {
    std::string source;     ///< the sweep that vouches for the kernel
    bool zeroesPad = false; ///< right if the scratchpad is zeroed first
  };
  virtual ~KernelEvidence();
  /// Returns nothing where nobody vouches for the kernel.
  virtual std::optional<Finding> find(const PrimitiveDesc &desc,
                                      std::string_view kernel) const = 0;
};

/// One line of what sweeps have found; lists are separated by spaces.
struct EvidenceRow {
  std::string_view version; ///< of the library, "3.2.0"
  std::string_view isa;     ///< as in ONEDNN_MAX_CPU_ISA
  std::string_view kind;    ///< kernelKindName()
  std::string_view dtype;
  std::string_view kernels; ///< or "*", whichever the library prefers
  std::string_view traits;  ///< kernels are right for shapes of no others
  std::string_view source;
};

/// The rows of one version and one instruction set.
class CKRT_EXPORT EvidenceTable final : public KernelEvidence {
public:
  EvidenceTable(std::vector<EvidenceRow> rows, std::string version,
                std::string isa)
      : rows(std::move(rows)), version(std::move(version)),
        isa(std::move(isa)) {}
  std::optional<Finding> find(const PrimitiveDesc &desc,
                              std::string_view kernel) const override;

private:
  std::vector<EvidenceRow> rows;
  std::string version, isa;
};

/// Makes a primitive as Primitive::create() does, kernels of oneDNN by this
/// evidence.
CKRT_EXPORT std::unique_ptr<Primitive>
createPrimitive(const PrimitiveDesc &desc, int32_t threads,
                const KernelEvidence &evidence, std::string &error);

/// Returns what is known of this library on this machine.
const KernelEvidence &builtInEvidence();
/// Returns all rows, of every version and instruction set.
CKRT_EXPORT const std::vector<EvidenceRow> &evidenceRows();

/// Returns the traits that decide which kernels of the library compute a
/// product or convolution, and how: "rank2 strided grouped".
CKRT_EXPORT std::vector<std::string_view> traitsOf(const PrimitiveDesc &desc);
/// Returns whether a kernel reads parts of its scratchpad that it never wrote,
/// whoever vouches for it.
CKRT_EXPORT bool readsUnwritten(const PrimitiveDesc &desc);
/// Returns "matmul", "convolution", "input-gradient", "weight-gradient".
CKRT_EXPORT std::string_view kernelKindName(PrimitiveKind kind);

/// Returns the library's version, "3.2.0".
CKRT_EXPORT std::string dnnlVersion();
/// Returns the instruction set that the library uses, as in
/// ONEDNN_MAX_CPU_ISA. Before its first use the library is held to the largest
/// set that some row is of, unless the environment has decided.
CKRT_EXPORT std::string dnnlInstructionSet();

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CPU_KERNELEVIDENCE_H
