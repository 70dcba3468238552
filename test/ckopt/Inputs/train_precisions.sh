#!/usr/bin/env bash
# train_precisions.sh KINDS MODEL OUT COMMAND...: three steps for each KIND
# (PRECISION-LIBRARIES), with our own kernels or with libraries, at two budgets
# where kernels differ by more than the type that operands are rounded to. COMMAND runs
# a program on the stand-in. OUT/PRECISION-LIBRARIES-BUDGET is the artifact; beside
# it .txt has losses and the hash of all results, .json the report, .log the
# stand-in's calls.
set -euo pipefail
kinds=$1 model=$2 out=$3
shift 3
# mixed-..., half-...: activations in bf16 or f16 as well, the latter's loss scaled.
for kind in $kinds; do
  flag=--matmul-precision=${kind%-*}
  [ "${kind%-*}" != mixed ] || flag=--precision=bf16
  [ "${kind%-*}" != half ] || flag=--precision=f16
  budgets=1
  [[ $kind != tf32-none && $kind != mixed-none && $kind != mixed-auto ]] || budgets="1 min"
  for budget in $budgets; do
    name=$out/$kind-$budget
    ckopt compile "$model" --loss=cross_entropy --work-limit=300000 --activation-ratio=$budget --target=cuda -O 0 \
      "$flag" --cuda-libs="${kind#*-}" --cuda-emulation="$name.so" -o "$name" --report="$name.json" >"$name.plan"
    CKOPT_STANDIN_KERNELS=$name.so CKOPT_STANDIN_LOG=$name.log "$@" ckopt-run "$name" --random=x:0:1 --random=target:0:10 \
      --steps=3 --lr=0.05 --print-loss --hash --lock="$out/lock" >"$name.txt"
  done
  [ "$budgets" = 1 ] || cmp "$out/$kind-1.txt" "$out/$kind-min.txt"
done
