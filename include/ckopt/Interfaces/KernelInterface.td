//===- KernelInterface.td - what fusion and planning ask ops -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_INTERFACES_KERNELINTERFACE
#define CKOPT_INTERFACES_KERNELINTERFACE

include "mlir/IR/OpBase.td"

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::ckopt";
  let description = [{
    What an op is to the phases between autodiff and lowering: which kind of
    kernel it becomes part of, what it costs, which operands' bytes its results
    may take over. Ops without the interface (of other dialects) are
    refused by fuse; remat plans them with conservative answers (Analysis).
  }];
  let methods = [
    InterfaceMethod<"How the op takes part in kernels.",
      "::ckopt::KernelKind", "getKernelKind", (ins)>,
    InterfaceMethod<[{
        Floating-point operations for one element of the largest result, for ops
        whose work is the same for each of them.
      }],
      "double", "getFlopsPerElement", (ins), "",
      /*defaultImplementation=*/"return 1;">,
    InterfaceMethod<[{
        Share of its operations that is left where the device approximates
        functions.
      }],
      "double", "getApproximatedShare", (ins), "",
      /*defaultImplementation=*/"return 1;">,
    InterfaceMethod<[{
        Whether fusion may compute the op inside the kernels that read it. For
        an indexed op: its reads must stay contiguous along the lanes.
      }],
      "bool", "isFusible", (ins), "",
      /*defaultImplementation=*/[{
        return ::ckopt::detail::isFusibleKind($_op.getKernelKind());
      }]>,
    InterfaceMethod<[{
        Whether operand `index` must lie in memory when the op runs, rather than
        be computed by the op's own kernel.
      }],
      "bool", "needsStoredOperand", (ins "unsigned":$index), "",
      /*defaultImplementation=*/[{
        return ::ckopt::detail::defaultNeedsStoredOperand($_op.getOperation(), index);
      }]>,
    InterfaceMethod<"Which physical orders of dimensions the op takes and makes.",
      "::ckopt::LayoutRole", "getLayoutRole", (ins), "",
      /*defaultImplementation=*/[{
        return ::ckopt::detail::layoutRoleOfKind($_op.getKernelKind());
      }]>,
    InterfaceMethod<[{
        For ops of role Matrices: whether operand `index` is read (results:
        whether result `index` is written) in place with these strides.
      }],
      "bool", "acceptsStrides", (ins "bool":$isResult, "unsigned":$index,
        "::llvm::ArrayRef<int64_t>":$strides), "",
      /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
        Floating-point operations of one execution (an addition is one, a
        multiply-add two, an exp or tanh about twenty).
      }],
      "double", "getFlops", (ins), "",
      /*defaultImplementation=*/[{
        return ::ckopt::detail::defaultFlops($_op.getOperation());
      }]>,
    InterfaceMethod<[{
        Pairs (operand, result): the result may take the operand's bytes over,
        since each point of the operand is read before the same point of the
        result is written and never read again. Conservative answer: none.
      }],
      "::llvm::SmallVector<std::pair<unsigned, unsigned>>", "getReusePairs",
      (ins), "",
      /*defaultImplementation=*/[{
        return ::ckopt::detail::defaultReusePairs($_op.getOperation());
      }]>,
    InterfaceMethod<[{
        Pairs (operand, result) of a state update: the result is the operand's
        new value, the op runs exactly once and is never cloned.
      }],
      "::llvm::SmallVector<std::pair<unsigned, unsigned>>", "getUpdatePairs",
      (ins), "", /*defaultImplementation=*/"return {};">,
    InterfaceMethod<[{
        Of kind Update: whether the op only stores what others compute, so that
        adjacent ones share a kernel.
      }],
      "bool", "isAssignment", (ins), "",
      /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
        Mixed precision: what decides whether the first result may be stored in
        a half (factors and results of contractions are, see
        ContractionOpInterface). Default: as the kind says (StorageClass).
      }],
      "::ckopt::StorageClass", "getStorageClass", (ins), "",
      /*defaultImplementation=*/[{
        return ::ckopt::detail::storageOfKind($_op.getKernelKind());
      }]>,
    InterfaceMethod<"Whether result `index` stays f32 beside a first one in halves.",
      "bool", "isStatistic", (ins "unsigned":$index), "",
      /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
        Of kind RowWise: whether the op itself stores what it computes from f32
        in halves, and from halves in f32.
      }],
      "bool", "storesAnyWidth", (ins), "",
      /*defaultImplementation=*/"return false;">,
  ];
}

#endif // CKOPT_INTERFACES_KERNELINTERFACE
