//===- Passes.td - order and recomputation under a budget ---*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REMAT_PASSES
#define CKOPT_REMAT_PASSES

include "mlir/Pass/PassBase.td"

def RematPass : Pass<"remat"> {
  let summary = "Reorders ops and computes values again to fit a memory budget";
  let description = [{
    Works on any function (FunctionOpInterface) of one block of ops on ranked,
    statically shaped tensors, of any dialect. The result computes the same values from the same
    ops:

    ```mlir
    %a = linalg.generic ins(%x) ...                        // big, read far below
    ...
    %0 = ckopt.barrier %x {clone = 1}
    %1 = linalg.generic ins(%0) ... {ckopt.clone = 1}      // made again
    %b = linalg.matmul ins(%1, ...) ...
    ```

    Runs on a module (`builtin.module(remat{...})`: all functions in it and in
    modules inside share one arena and one budget, the arguments of all count; a
    ratio is one of the largest peak, `min` the least that all functions fit) or
    on each function (`builtin.module(func.func(remat{...}))`: each has the
    budget for itself, and what its callees need is not counted).

    What is one op: an op with its regions; values that a region captures count
    as read by it. Ops that may have side effects (calls, memory references,
    unregistered ops) keep their order and run once; only pure ops run again. So
    do loops of unknown length, unless `ckopt.cost` prices them.
    What has bytes: results of the function's ops, arguments (always there) and
    the function's results; what an op with regions makes inside, and what a
    callee needs, while it runs; scalars and constants have none; expand_shape,
    collapse_shape, casts and slices at constant offsets are views. What cannot
    be counted (values of unknown types, allocated memory, unregistered ops) is
    named in a remark, and is an error where a budget is given, unless
    `allow-uncounted` is. Ops in
    destination-passing style may write to a destination that is not read again;
    `tensor.empty` costs nothing and stands before each op that writes to it.

    Functions with ops of other dialects are first canonicalized to a fixed
    point, unless they then need more; they are lowered on trial, so that the
    plan counts what runs, and stay as they are where no plan takes less (see
    docs/remat-pass.md). Their clones carry `ckopt.clone` and read one operand through
    `ckopt.barrier`, so that CSE and canonicalization keep them apart until
    `strip-barriers`. One-shot bufferization treats a barrier as a view.

    Every plan is verified before it is applied. If none fits: an error with the
    smallest budget found, a proven bound below it, and the largest tensors
    alive at the peak. What the plan is like stands in the function's attribute
    `ckopt.plan`, in `report`, and in remarks (`remarks`, or the optimization
    remarks of category `remat`: `--remarks-filter=remat`).

    Further options say how to search: one for each row of the table of
    lib/Planner/Formats/SearchOptions.cpp (`strategy`, `effort`, `seed`, ...).
  }];
  let options = [
    Option<"budget", "budget", "std::string", "\"\"",
           "Bytes (`512MiB`, `2GB`, `4096`), a share of the peak without "
           "recomputation (`0.6x`) or `min`; default: no limit">,
    Option<"budgetRatio", "budget-ratio", "std::string", "\"\"",
           "Share of the peak without recomputation (`0.6`)">,
    Option<"activationRatio", "activation-ratio", "std::string", "\"\"",
           "Share of the reducible part of the peak; the rest stays">,
    Option<"costModel", "cost-model", "std::string", "\"analytic\"",
           "`analytic` (work, bytes, measured rates), `profile=FILE` "
           "(ckopt-profile/1) or `attribute` (`ckopt.cost` on every op); the "
           "first two, too, prefer `ckopt.cost` where an op has it">,
    Option<"policy", "policy", "std::string", "\"auto\"",
           "`auto`, `per-block`, `sequential:K`, a policy as JAX names it "
           "(`nothing_saveable`, `dots_saveable`, ...), or regions and policy "
           "joined by `+`; docs/checkpointing.md">,
    Option<"save", "save", "std::string", "\"\"",
           "Rules, separated by `;`: values that run once and stay. A rule is "
           "a regular expression on whole node names, or `op:`, `scope:`, "
           "`class:` and one on kinds, modules, classes">,
    Option<"recompute", "recompute", "std::string", "\"\"",
           "Rules: values that are dropped after the forward pass and computed "
           "again for the backward pass">,
    Option<"automatic", "auto", "std::string", "\"\"",
           "Rules: values that the planner decides about, whatever regions and "
           "attributes say">,
    Option<"checkpoint", "checkpoint", "std::string", "\"\"",
           "Rules on modules (name or class): each module that matches is a "
           "region that keeps only its inputs">,
    Option<"planFile", "plan", "std::string", "\"\"",
           "Take the plan from this file (ckopt-plan/1) instead of searching">,
    Option<"planHint", "plan-hint", "std::string", "\"\"",
           "Start from the plan of this file; the answer is never worse where "
           "it is valid and fits">,
    Option<"compare", "compare", "std::string", "\"quick\"",
           "What a policy costs against a plan without it: `quick` (with at "
           "most a quarter more work), `on` (with a search as long as the "
           "policy's), `off`">,
    Option<"planOut", "plan-out", "std::string", "\"\"",
           "Write the plan of one function: @step, else the first that is planned">,
    Option<"report", "report", "std::string", "\"\"",
           "Write the plans' figures to this JSON file (`-`: standard output)">,
    Option<"remarks", "remarks", "bool", "false",
           "Emit a remark for each value that is kept or computed again">,
    Option<"overlap", "overlap", "bool", "false",
           "Weigh collectives by what no kernel hides once the pass `overlap` "
           "has moved them">,
    ListOption<"rematOps", "remat-ops", "std::string",
               "Files (ckopt-ops/1) that describe ops and types of dialects "
               "that are not known here">,
    Option<"apart", "apart", "std::string", "\"barrier\"",
           "What keeps clones from being merged with their originals: "
           "`barrier` (ckopt.barrier), `attribute` (ckopt.clone alone), or the "
           "name of an op that returns its one operand">,
    Option<"allowUncounted", "allow-uncounted", "bool", "false",
           "Plan for a budget although the function needs bytes that are not "
           "counted: the budget then holds for what is">,
    ListOption<"optional", "optional", "std::string",
               "Functions that are erased, with a remark, where no plan of "
               "them fits the budget, or the least bytes of the others">,
    Option<"skipUnsupported", "skip-unsupported", "bool", "false",
           "Leave functions that cannot be planned as they are, with a remark, "
           "instead of an error">,
    Option<"canonicalizeFirst", "canonicalize", "bool", "true",
           "Canonicalize functions with ops of other dialects first">,
    ListOption<"functions", "functions", "std::string",
               "Names of the functions to plan, those in modules inside as "
               "`inner::f` or `f` (default: all but kernels)">,
  ];
  let dependentDialects = ["::ckopt::CkoptDialect"];
}

def StripBarriersPass : Pass<"strip-barriers"> {
  let summary = "Removes ckopt.barrier ops after everything was scheduled";
  let description = [{
    Also removes `ckopt.clone` and `ckopt.node` from ops of other dialects, so
    that tools without ckopt read the IR. From here on CSE merges clones with
    their originals: lower to buffers first, or run it no more.
  }];
}

#endif // CKOPT_REMAT_PASSES
