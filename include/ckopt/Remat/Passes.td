//===- Passes.td - order and recomputation under a budget ---*- tablegen -*-===//
#ifndef CKOPT_REMAT_PASSES
#define CKOPT_REMAT_PASSES

include "mlir/Pass/PassBase.td"

def RematPass : Pass<"remat", "mlir::ModuleOp"> {
  let summary = "Reorders ops and computes values again to fit a memory budget";
  let description = [{
    Works on any function of one block of pure ops on statically shaped tensors.
    The result computes the same values from the same ops:

    ```mlir
    %a = ckopt.kernel_call @f(%x) : ...                  // big, read far below
    ...
    %0 = ckopt.kernel_call @f(%x) {clone = 1} : ...      // made again
    %b = ckopt.kernel_call @g(%0) : ...
    ```

    Functions with ops of other dialects are first canonicalized to a fixed
    point; their clones carry `ckopt.clone` and read one operand through
    `ckopt.barrier`, so that CSE and canonicalization keep them apart until
    `strip-barriers`. Ops with side effects keep their order and run once.

    The first function (@step if there is one) resolves a relative budget; the
    others get the same bytes. Every plan is verified before it is applied. If
    none fits: an error with the smallest budget found, a proven bound below it,
    and the largest tensors alive at the peak.
  }];
  let options = [
    Option<"budget", "budget", "std::string", "\"\"",
           "Bytes (`512MiB`, `2GB`, `4096`) or `min`; default: no limit">,
    Option<"budgetRatio", "budget-ratio", "std::string", "\"\"",
           "Share of the arena without recomputation">,
    Option<"activationRatio", "activation-ratio", "std::string", "\"\"",
           "Share of the reducible part of the arena; the rest stays">,
    Option<"strategy", "strategy", "std::string", "\"auto\"",
           "Planner strategy">,
    Option<"timeLimit", "time-limit", "double", "60",
           "Seconds for one function (a safety net)">,
    Option<"effort", "effort", "double", "1",
           "Work factor of the local search; 0: none">,
    Option<"report", "report", "std::string", "\"\"",
           "Write the plans' figures to this JSON file (`-`: standard output)">,
    Option<"remarks", "remarks", "bool", "false",
           "Emit a remark for each value that is computed again">,
    ListOption<"functions", "functions", "std::string",
               "Names of the functions to plan (default: all but kernels)">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def StripBarriersPass : Pass<"strip-barriers"> {
  let summary = "Removes ckopt.barrier ops after everything was scheduled";
}

#endif // CKOPT_REMAT_PASSES
