#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# At equal arena bytes, what order, recomputation and placement each gain: the
# least extra cost (percent) whose arena fits a share of what the program order
# needs as best fit packs it. Runs ckopt-plan only.
#   order: other orders, no recomputation.
#   placed after: recomputation in the program order, planned for a load and
#   packed when that is done, as one must who plans without placement; the
#   largest load whose plan then fits, from all of the bytes downwards in
#   steps of half a percent. The load is given behind the cost, in percent of
#   the bytes.
#   joint: with placement in the loop, in the program order (as many seconds as
#   all plans of `placed after` had together) and in any.
# Usage: test/bench/ablation.sh GRAPH.json...
#   CKOPT_PLAN: the tool (build/bin/ckopt-plan); RATIOS: "0.7 0.5"; LIMIT: 20.
set -euo pipefail
plan=${CKOPT_PLAN:-build/bin/ckopt-plan}
ratios=${RATIOS:-0.7 0.5}
limit=${LIMIT:-20}
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
extra() { # seconds flags... -> percent, - or x
  local code=0 text seconds=$1
  shift
  text=$("$plan" "$@" --time-limit="$seconds" 2>/dev/null) || code=$?
  case $code in
  0)
    text=$(sed -nE 's/.* ([0-9.]+) % more cost.*/\1/p' <<<"$text")
    echo "${text:-0}"
    ;;
  2) echo x ;;
  *) echo - ;;
  esac
}
placed_after() { # graph ratio -> percent (load), - or x; plans made in $temporary/plans
  local cost tight step packed
  echo 1 >"$temporary/plans"
  for step in $(seq 0 30); do
    tight=$(awk "BEGIN { print $2 * (1 - 0.005 * $step) }")
    echo $((step + 1)) >"$temporary/plans"
    cost=$(extra "$limit" "$1" --budget-ratio="$tight" --fixed-order -o "$temporary/plan.json")
    case $cost in x | -)
      echo "$cost"
      return
      ;;
    esac
    # Nothing is searched here but offsets for the plan's steps.
    packed=$("$plan" "$1" --budget-ratio="$2" --pack --fixed-order --effort=0 --strategy=none \
      --plan-hint="$temporary/plan.json" --time-limit="$limit" 2>/dev/null) || continue
    grep -q '^strategy *\(hint\|none\)' <<<"$packed" || continue
    echo "$cost ($(awk "BEGIN { print 100 - 0.5 * $step }"))"
    return
  done
  echo -
}
echo '| graph | budget | order | fixed order, placed after | fixed order, joint placement | all joint |'
echo '| --- | ---: | ---: | ---: | ---: | ---: |'
for graph in "$@"; do
  for ratio in $ratios; do
    order=$(extra "$limit" "$graph" --budget-ratio="$ratio" --pack --order-only)
    after=$(placed_after "$graph" "$ratio")
    same=$((limit * $(cat "$temporary/plans")))
    echo "| $(basename "$graph" .json) | $ratio | $order | $after |" \
      "$(extra "$same" "$graph" --budget-ratio="$ratio" --fixed-order --pack) |" \
      "$(extra "$limit" "$graph" --budget-ratio="$ratio" --pack) |"
  done
done
