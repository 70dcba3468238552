//===- PlanningInterface.td - what remat asks other ops ------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_INTERFACES_PLANNINGINTERFACE
#define CKOPT_INTERFACES_PLANNINGINTERFACE

include "mlir/IR/OpBase.td"

def PlanningOpInterface : OpInterface<"PlanningOpInterface"> {
  let cppNamespace = "::ckopt";
  let description = [{
    What other compilers tell `remat` of their ops, by implementing it or by an
    external model (`PlanningOpInterface::ExternalModel`). Every method may
    answer `std::nullopt`: the conservative answer for ops of any dialect holds
    then. An attribute of the op (`ckopt.cost`, `ckopt.workspace`) and callbacks
    of `PlanningHooks` come before the interface, a profile does for seconds.
  }];
  let methods = [
    InterfaceMethod<"Seconds of one execution, from 0 to 1e9.",
      "::std::optional<double>", "getPlanningSeconds", (ins), "",
      /*defaultImplementation=*/"return ::std::nullopt;">,
    InterfaceMethod<[{
        Bytes that one execution needs beside its operands and results, regions
        and callees included.
      }],
      "::std::optional<int64_t>", "getPlanningWorkspace", (ins), "",
      /*defaultImplementation=*/"return ::std::nullopt;">,
    InterfaceMethod<[{
        Whether the op may run several times. True is a promise: each run on the
        same operands gives the same results, and nothing sees how often or when
        it runs; the op's effects are not asked then. False: it runs once.
      }],
      "::std::optional<bool>", "isRematerializable", (ins), "",
      /*defaultImplementation=*/"return ::std::nullopt;">,
    InterfaceMethod<[{
        Pairs (operand, result): the result may take the operand's bytes over
        where nothing reads the operand later. They must have the same bytes,
        each point of the operand is read before the same point of the result is
        written and never read again.
      }],
      "::std::optional<::ckopt::PlanningReusePairs>", "getPlanningReusePairs",
      (ins), "", /*defaultImplementation=*/"return ::std::nullopt;">,
  ];
}

#endif // CKOPT_INTERFACES_PLANNINGINTERFACE
