// Every row of the planner's table of search options is an option of remat: help has it, a pipeline prints it as it
// was given, and so is it parsed again.
// RUN: ckopt-opt --help | FileCheck %s --check-prefix=HELP
// RUN: ckopt-opt %s --pass-pipeline="builtin.module(remat{budget=12KiB strategy=prices fixed-order=true time-limit=0.1 work-limit=300000 search-to-limit=true effort=0.30000000000000004 seed=18446744073709551615 threads=2})" \
// RUN:   --dump-pass-pipeline -o %t.1 2>%t.printed
// RUN: FileCheck %s --check-prefix=PRINTED < %t.printed
// RUN: ckopt-opt %s --pass-pipeline="builtin.module(func.func(remat{order-only=true}))" --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=NESTED
// RUN: not ckopt-opt %s --remat="threads=257" 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not ckopt-opt %s --remat="effort=nan" 2>&1 | FileCheck %s --check-prefix=EFFORT
// RUN: not ckopt-opt %s --remat="fixed-order order-only" 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not ckopt-opt %s --remat="order-only strategy=dtr" 2>&1 | FileCheck %s --check-prefix=ONE

// HELP: --remat
// HELP: --effort=<number>
// HELP-SAME: Work factor of the local search; 0: none
// HELP: --fixed-order
// HELP-SAME: Keep the program's order; only add recomputation
// HELP: --order-only
// HELP-SAME: Recompute nothing: search the order alone
// HELP: --search-to-limit
// HELP-SAME: Search until a limit strikes or nothing better can exist
// HELP: --seed=<ulong>
// HELP-SAME: Seed of the local search
// HELP: --strategy=<string>
// HELP-SAME: Planner strategy; an unknown one lists all
// HELP: --threads=<int>
// HELP-SAME: Threads of the search; 0: all cores. The plan does not depend on it
// HELP: --time-limit=<number>
// HELP-SAME: Seconds for one function (a safety net); 0: none
// HELP: --work-limit=<long>
// HELP-SAME: Work units (about 50 ns each) for one function

// PRINTED: effort=0.30000000000000004 fixed-order=true
// PRINTED-SAME: search-to-limit=true seed=18446744073709551615 skip-unsupported=false strategy=prices threads=2 time-limit=0.1 work-limit=300000

// NESTED: func.func({{[[:space:]]*}}remat{
// NESTED-SAME: effort=1 fixed-order=false
// NESTED-SAME: order-only=true
// NESTED-SAME: seed=1 {{.*}}strategy=auto threads=0 time-limit=60 work-limit=0

// THREADS: error: remat: threads is an integer from 1 to 256
// EFFORT: error: remat: effort is a number from 0 to 1e+06
// NOTHING: error: remat: order-only and fixed-order leave nothing to search
// ONE: error: remat: order-only has one search: leave out strategy=dtr
func.func @chain(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = math.exp %x : tensor<1024xf32>
  %1 = math.sin %0 : tensor<1024xf32>
  %2 = math.cos %1 : tensor<1024xf32>
  %3 = arith.mulf %2, %1 : tensor<1024xf32>
  %4 = arith.mulf %3, %0 : tensor<1024xf32>
  return %4 : tensor<1024xf32>
}
